// The list of sessions: search, new, rename, delete.

import { useEffect, useRef, useState } from "preact/hooks";
import { wordsOf } from "./api";
import { Bin, Cross, Pencil } from "./icons";
import type { Sessions } from "./sessions";
import { useStore } from "./store";
import { ago, oneLine } from "./text";
import type { SessionInfo } from "./wire";
import { language, languages, words } from "./words";

const TYPING_MS = 150;

interface Props {
  sessions: Sessions;
  current: string | undefined;
  open: (id: string | undefined) => void;
  close: () => void;
  speak: (language: string) => void;
  openSettings: () => void;
}

export function Sidebar({ sessions, current, open, close, speak, openSettings }: Props) {
  useStore(sessions);
  const typing = useRef<number>(0);
  const [failure, setFailure] = useState("");
  const attempt = (work: Promise<unknown>): void => {
    setFailure("");
    work.catch((error: unknown) => setFailure(wordsOf(error)));
  };
  const search = (text: string): void => {
    clearTimeout(typing.current);
    typing.current = window.setTimeout(() => attempt(sessions.search(text)), TYPING_MS);
  };
  return (
    <nav class="sidebar" aria-label={words.sessions}>
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
      {failure && <p class="failure" role="alert">{failure}</p>}
      <ul class="sessions">
        {sessions.items.map((info) => (
          <Row
            key={info.id}
            info={info}
            isCurrent={info.id === current}
            open={() => open(info.id)}
            rename={(title) => attempt(sessions.rename(info.id, title))}
            remove={() => {
              attempt(sessions.remove(info.id).then(() => info.id === current && open(undefined)));
            }}
          />
        ))}
      </ul>
      {sessions.loaded && !sessions.items.length && (
        <p class="quiet">{sessions.query ? words.noMatch : words.noSessions}</p>
      )}
      {sessions.cursor !== null && (
        <button type="button" class="more" onClick={() => attempt(sessions.more())}>{words.showMore}</button>
      )}
      <button type="button" onClick={openSettings}>{words.settings}</button>
      <label class="language">
        <span class="unseen">{words.language}</span>
        <select value={language} onChange={(event) => speak(event.currentTarget.value)}>
          {languages().map(([code, name]) => <option key={code} value={code} lang={code}>{name}</option>)}
        </select>
      </label>
    </nav>
  );
}

interface RowProps {
  info: SessionInfo;
  isCurrent: boolean;
  open: () => void;
  rename: (title: string) => void;
  remove: () => void;
}

function Row({ info, isCurrent, open, rename, remove }: RowProps) {
  const [mode, setMode] = useState<"plain" | "rename" | "delete">("plain");
  const field = useRef<HTMLInputElement>(null);
  const title = oneLine(info.title) || words.newSession;
  useEffect(() => field.current?.select(), [mode]);
  if (mode === "rename") {
    const finish = (): void => {
      const name = field.current?.value.trim() ?? "";
      setMode("plain");
      if (name && name !== info.title) rename(name);
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
            if (event.key === "Escape") setMode("plain");
          }}
        />
      </li>
    );
  }
  if (mode === "delete") {
    return (
      <li class="session deleting">
        <span>{words.removeQuestion(title)}</span>
        <button type="button" class="danger" onClick={remove}>{words.remove}</button>
        <button type="button" onClick={() => setMode("plain")}>{words.keep}</button>
      </li>
    );
  }
  return (
    <li class={isCurrent ? "session current" : "session"}>
      <button type="button" class="open" aria-current={isCurrent ? "page" : undefined} onClick={open}>
        <span class="title" dir="auto">{title}</span>
        <span class="quiet">{info.match ? oneLine(info.match, 80) : ago(info.updated)}</span>
      </button>
      <button type="button" class="icon" aria-label={words.renameOf(title)} title={words.rename} onClick={() => setMode("rename")}><Pencil /></button>
      <button type="button" class="icon" aria-label={words.removeOf(title)} title={words.remove} onClick={() => setMode("delete")}><Bin /></button>
    </li>
  );
}
