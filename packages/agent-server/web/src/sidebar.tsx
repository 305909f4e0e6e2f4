// The list of sessions: search, folders, tags, pins, the archive; one session or many at once.

import { useEffect, useRef, useState } from "preact/hooks";
import { Problem, wordsOf } from "./api";
import { onEscape } from "./commands";
import { Bin, Cross, Dots, Pencil, Pin } from "./icons";
import type { Offers } from "./offers";
import { OffersMenu } from "./plugin_views";
import type { ExportForm, Sessions } from "./sessions";
import { useStore } from "./store";
import { ago, oneLine, visible, withHits } from "./text";
import { keepTheme, type Theme, theme } from "./theme";
import type { SessionInfo } from "./wire";
import { language, languages, words } from "./words";

const TYPING_MS = 150;

interface Props {
  sessions: Sessions;
  current: string | undefined;
  open: (id: string | undefined) => void;
  close: () => void;
  speak: (language: string) => void;
  offers: Offers;
  openSettings: () => void;
}

export function Sidebar({ sessions, current, open, close, speak, offers, openSettings }: Props) {
  useStore(sessions);
  const typing = useRef<number>(0);
  const chooser = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const [failure, setFailure] = useState("");
  const [choosing, setChoosing] = useState(false);
  const [refused, setRefused] = useState<{ file: File; texts: string[] }>();
  const attempt = (work: Promise<unknown>): void => {
    setFailure("");
    work.catch((error: unknown) => setFailure(wordsOf(error)));
  };
  const search = (query: string): void => {
    clearTimeout(typing.current);
    typing.current = window.setTimeout(() => attempt(sessions.show({ query })), TYPING_MS);
  };
  const importFile = (file: File, allowSystem = false): void => {
    setRefused(undefined);
    const work = sessions.import(file, allowSystem).then((made) => open(made.id));
    attempt(
      work.catch((error: unknown) => {
        if (!(error instanceof Problem && error.type === "urn:keelwork:system-messages")) throw error;
        setRefused({ file, texts: error.errors.map(({ message }) => message) });
      }),
    );
  };
  const remove = (ids: Iterable<string>): void => {
    const gone = [...ids];
    list.current?.focus(); // the rows are gone soon, and the focus must not go with them
    attempt(sessions.remove(gone).then(() => current !== undefined && gone.includes(current) && open(undefined)));
  };
  const rows = (items: SessionInfo[]) =>
    items.map((info) => (
      <Row
        key={info.id}
        info={info}
        sessions={sessions}
        isCurrent={info.id === current}
        choosing={choosing}
        offers={offers}
        attempt={attempt}
        open={() => open(info.id)}
        remove={() => remove([info.id])}
      />
    ));
  return (
    <nav class="sidebar" aria-label={words.sessions} onKeyDown={onEscape(close)}>
      <div class="sidebar-head">
        <button type="button" class="primary" onClick={() => open(undefined)}>{words.newSession}</button>
        <button type="button" class="icon narrow" aria-label={words.closeList} onClick={close}><Cross /></button>
      </div>
      <input
        id="search"
        type="search"
        placeholder={words.searchSessions}
        aria-label={words.searchSessions}
        onInput={(event) => search(event.currentTarget.value)}
      />
      <Filters sessions={sessions} attempt={attempt} />
      {failure && <p class="failure" role="alert">{failure}</p>}
      {choosing && <BulkActions sessions={sessions} attempt={attempt} remove={() => remove(sessions.chosen)} />}
      <div class="sessions" ref={list} tabIndex={-1}>
        {sessions.pinned.length > 0 && <h2 class="quiet">{words.pinned}</h2>}
        {sessions.pinned.length > 0 && <ul>{rows(sessions.pinned)}</ul>}
        {sessions.pinned.length > 0 && <h2 class="quiet">{words.sessions}</h2>}
        <ul>{rows(sessions.items)}</ul>
        {sessions.loaded && !sessions.items.length && !sessions.pinned.length && (
          <p class="quiet">{sessions.isFiltered ? words.noMatch : words.noSessions}</p>
        )}
        {sessions.cursor !== null && (
          <button type="button" class="more" onClick={() => attempt(sessions.more())}>{words.showMore}</button>
        )}
      </div>
      <div class="sidebar-foot">
        <button
          type="button"
          aria-pressed={choosing}
          onClick={() => {
            sessions.chosen.clear();
            setChoosing(!choosing);
          }}
        >
          {words.select}
        </button>
        <button type="button" onClick={() => chooser.current?.click()}>{words.import}</button>
        <input
          ref={chooser}
          class="import"
          type="file"
          accept=".zip,.json"
          hidden
          onChange={(event) => {
            const [file] = event.currentTarget.files ?? [];
            event.currentTarget.value = "";
            if (file) importFile(file);
          }}
        />
        <OffersMenu offers={offers} places={["application_action"]} />
        <button type="button" onClick={openSettings}>{words.settings}</button>
        <label class="theme">
          <span class="unseen">{words.theme}</span>
          <select title={words.theme} defaultValue={theme()} onChange={(event) => keepTheme(event.currentTarget.value as Theme)}>
            {(["system", "light", "dark"] as const).map((name) => <option key={name} value={name}>{words.themes[name]}</option>)}
          </select>
        </label>
        <label class="language">
          <span class="unseen">{words.language}</span>
          <select value={language} onChange={(event) => speak(event.currentTarget.value)}>
            {languages().map(([code, name]) => <option key={code} value={code} lang={code}>{name}</option>)}
          </select>
        </label>
      </div>
      {refused && (
        <Instructions texts={refused.texts} agree={() => importFile(refused.file, true)} close={() => setRefused(undefined)} />
      )}
    </nav>
  );
}

/** Shows instructions for the model that a file brings, before anybody agrees to them. */
function Instructions({ texts, agree, close }: { texts: string[]; agree: () => void; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="instructions" aria-labelledby="instructions-title" onClose={close}>
      <h2 id="instructions-title">{words.fileInstructs}</h2>
      <p>{words.fileInstructsMore}</p>
      <div class="texts" tabIndex={0} role="region" aria-label={words.fileInstructs}>
        {texts.map((text, at) => <pre key={at} class="plain" dir="auto">{visible(text)}</pre>)}
      </div>
      <div class="buttons">
        <button type="button" onClick={close}>{words.dontImport}</button>
        <button type="button" class="danger" onClick={agree}>{words.importAnyway}</button>
      </div>
    </dialog>
  );
}

type Attempt = (work: Promise<unknown>) => void;

function Filters({ sessions, attempt }: { sessions: Sessions; attempt: Attempt }) {
  const { folder, tag, archived } = sessions.filter;
  return (
    <div class="filters">
      {sessions.folders.length > 0 && (
        <select aria-label={words.folder} value={folder} onChange={(event) => attempt(sessions.show({ folder: event.currentTarget.value }))}>
          <option value="">{words.allFolders}</option>
          {sessions.folders.map((name) => <option key={name} value={name}>{name}</option>)}
        </select>
      )}
      {sessions.tags.length > 0 && (
        <select aria-label={words.tag} value={tag} onChange={(event) => attempt(sessions.show({ tag: event.currentTarget.value }))}>
          <option value="">{words.allTags}</option>
          {sessions.tags.map((name) => <option key={name} value={name}>{name}</option>)}
        </select>
      )}
      <label><input type="checkbox" checked={archived} onChange={(event) => attempt(sessions.show({ archived: event.currentTarget.checked }))} /> {words.archive}</label>
    </div>
  );
}

/** What can be done with all sessions that are chosen. */
function BulkActions({ sessions, attempt, remove }: { sessions: Sessions; attempt: Attempt; remove: () => void }) {
  const [asks, setAsks] = useState(false);
  const number = sessions.chosen.size;
  const all = [...sessions.pinned, ...sessions.items];
  const isArchive = sessions.filter.archived;
  if (asks && number > 0) {
    return (
      <div class="bulk" role="group" aria-label={words.chosen(number)}>
        <span>{words.removeMany(number)}</span>
        <button type="button" class="danger" onClick={() => { setAsks(false); remove(); }}>{words.remove}</button>
        <button type="button" onClick={() => setAsks(false)}>{words.keep}</button>
      </div>
    );
  }
  return (
    <div class="bulk" role="group" aria-label={words.chosen(number)}>
      <label>
        <input type="checkbox" checked={number > 0 && number === all.length} onChange={(event) => all.forEach(({ id }) => sessions.choose(id, event.currentTarget.checked))} /> {words.chosen(number)}
      </label>
      <button type="button" disabled={!number} onClick={() => attempt(sessions.label(sessions.chosen, { archived: !isArchive }))}>{isArchive ? words.unarchive : words.toArchive}</button>
      <select aria-label={words.export} value="" disabled={!number} onChange={(event) => attempt(sessions.export(sessions.chosen, event.currentTarget.value as ExportForm))}>
        <option value="" disabled>{words.export}</option>
        {FORMS.map((form) => <option key={form} value={form}>{words.exportAs(form.toUpperCase())}</option>)}
      </select>
      <button type="button" class="danger" disabled={!number} onClick={() => setAsks(true)}>{words.remove}</button>
      <BulkField name="folder" label={words.folder} button={words.move} known={sessions.folders} isOff={!number} take={(folder) => attempt(sessions.label(sessions.chosen, { folder }))} />
      <BulkField name="tag" label={words.tag} button={words.addTag} known={sessions.tags} isOff={!number} take={(tag) => attempt(tag ? sessions.tag(sessions.chosen, tag) : Promise.resolve())} />
    </div>
  );
}

interface BulkFieldProps {
  name: string;
  label: string;
  button: string;
  known: string[];
  isOff: boolean;
  take: (text: string) => void;
}

function BulkField({ name, label, button, known, isOff, take }: BulkFieldProps) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        take(String(new FormData(event.currentTarget).get(name)).trim());
        event.currentTarget.reset();
      }}
    >
      <input name={name} aria-label={label} placeholder={label} maxLength={200} list={`known-${name}`} autocomplete="off" />
      <datalist id={`known-${name}`}>{known.map((one) => <option key={one} value={one} />)}</datalist>
      <button type="submit" disabled={isOff}>{button}</button>
    </form>
  );
}

interface RowProps {
  info: SessionInfo;
  sessions: Sessions;
  isCurrent: boolean;
  choosing: boolean;
  offers: Offers;
  attempt: Attempt;
  open: () => void;
  remove: () => void;
}

function Row({ info, sessions, isCurrent, choosing, offers, attempt, open, remove }: RowProps) {
  const [mode, setMode] = useState<"plain" | "rename" | "delete" | "more">("plain");
  const field = useRef<HTMLInputElement>(null);
  const row = useRef<HTMLLIElement>(null);
  const before = useRef(mode);
  const title = oneLine(info.title) || words.newSession;
  const isPinned = info.labels?.pinned ?? false;
  const labels = [info.labels?.folder, ...(info.labels?.tags ?? []).map((one) => `#${one}`)].filter(Boolean);
  useEffect(() => {
    field.current?.select();
    // What had the focus may be gone: it goes on to what has come in its place, or back to what opened that.
    if (mode === "delete") row.current?.querySelector<HTMLElement>(".keep")?.focus();
    const isHere = document.activeElement === document.body || row.current?.contains(document.activeElement);
    if (mode === "plain" && before.current !== "plain" && isHere) row.current?.querySelector<HTMLElement>({ rename: ".rename", delete: ".delete", more: ".more-of" }[before.current])?.focus();
    before.current = mode;
  }, [mode]);
  if (mode === "rename") {
    const finish = (): void => {
      const name = field.current?.value.trim() ?? "";
      setMode("plain");
      if (name && name !== info.title) attempt(sessions.rename(info.id, name));
    };
    return (
      <li class="session renaming">
        <input
          ref={field}
          value={info.title}
          maxLength={500}
          aria-label={words.newTitle}
          onBlur={finish}
          onKeyDown={(event) => {
            if (event.key === "Enter") finish();
            onEscape(() => setMode("plain"))(event);
          }}
        />
      </li>
    );
  }
  if (mode === "delete") {
    return (
      <li class="session deleting" ref={row} onKeyDown={onEscape(() => setMode("plain"))}>
        <span>{words.removeQuestion(title)}</span>
        <button type="button" class="danger" onClick={remove}>{words.remove}</button>
        <button type="button" class="keep" onClick={() => setMode("plain")}>{words.keep}</button>
      </li>
    );
  }
  return (
    <li class={isCurrent ? "session current" : "session"} ref={row}>
      {choosing && <input type="checkbox" aria-label={words.chooseOf(title)} checked={sessions.chosen.has(info.id)} onChange={(event) => sessions.choose(info.id, event.currentTarget.checked)} />}
      <button type="button" class="open" aria-current={isCurrent ? "page" : undefined} onClick={open}>
        <span class="title" dir="auto">{title}</span>
        <span class="quiet" dir="auto">{info.match ? <Hits text={oneLine(info.match, 160)} query={sessions.filter.query} /> : [ago(info.updated), ...labels].join(" · ")}</span>
      </button>
      {isPinned && <span class="pin"><Pin /></span>}
      <button type="button" class="icon rename" aria-label={words.renameOf(title)} title={words.rename} onClick={() => setMode("rename")}><Pencil /></button>
      <button type="button" class="icon delete" aria-label={words.removeOf(title)} title={words.remove} onClick={() => setMode("delete")}><Bin /></button>
      <button type="button" class="icon more-of" aria-expanded={mode === "more"} aria-label={words.moreOf(title)} title={words.more} onClick={() => setMode(mode === "more" ? "plain" : "more")}><Dots /></button>
      {mode === "more" && <RowMenu info={info} isPinned={isPinned} sessions={sessions} offers={offers} attempt={attempt} close={() => setMode("plain")} />}
    </li>
  );
}

/** A piece of a message, with what was searched for marked, from shortly before the first mark. */
function Hits({ text, query }: { text: string; query: string }) {
  const pieces = withHits(text, query);
  const [[first, isHit] = ["", false]] = pieces;
  const start = !isHit && pieces.length > 1 && first.length > BEFORE_HIT ? `…${first.slice(-BEFORE_HIT)}` : first;
  return <>{pieces.map(([piece, marked], at) => (marked ? <mark key={at}>{piece}</mark> : at === 0 ? start : piece))}</>;
}

const BEFORE_HIT = 12;
const FORMS: ExportForm[] = ["zip", "md", "html", "json"];

interface RowMenuProps {
  info: SessionInfo;
  isPinned: boolean;
  sessions: Sessions;
  offers: Offers;
  attempt: Attempt;
  close: () => void;
}

/** Pin, folder, tags, archive and export of one session, and what plugins offer for it. */
function RowMenu({ info, isPinned, sessions, offers, attempt, close }: RowMenuProps) {
  const labels = info.labels;
  const act = (work: Promise<unknown>): void => {
    attempt(work);
    close();
  };
  const save = (form: HTMLFormElement): void => {
    const data = new FormData(form);
    const tags = String(data.get("tags")).split(/[,\s]+/).filter(Boolean);
    act(sessions.label([info.id], { folder: String(data.get("folder")).trim(), tags }));
  };
  return (
    <div class="row-menu" onKeyDown={onEscape(close)}>
      <div class="buttons">
        <button type="button" onClick={() => act(sessions.pin(info))}>{isPinned ? words.unpin : words.pin}</button>
        <button type="button" onClick={() => act(sessions.label([info.id], { archived: !labels?.archived }))}>{labels?.archived ? words.unarchive : words.toArchive}</button>
      </div>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          save(event.currentTarget);
        }}
      >
        <label class="field"><span>{words.folder}</span><input name="folder" defaultValue={labels?.folder ?? ""} maxLength={200} list={`folders-${info.id}`} /></label>
        <datalist id={`folders-${info.id}`}>{sessions.folders.map((name) => <option key={name} value={name} />)}</datalist>
        <label class="field"><span>{words.tags}</span><input name="tags" defaultValue={(labels?.tags ?? []).join(" ")} /></label>
        <button type="submit" class="primary">{words.save}</button>
      </form>
      {offers.at("session_list_action").map((offer) => (
        <button
          key={`${offer.action.plugin} ${offer.action.id}`}
          type="button"
          title={offer.element?.description ?? offer.action.description}
          onClick={() => {
            offers.begin(offer, { session_id: info.id });
            close();
          }}
        >
          {offer.label}
        </button>
      ))}
      <div class="buttons" role="group" aria-label={words.export}>
        {FORMS.map((form) => <button key={form} type="button" onClick={() => act(sessions.export([info.id], form))}>{words.exportAs(form.toUpperCase())}</button>)}
      </div>
    </div>
  );
}
