// What was said, from the top to the newest.

import { Component, type ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { client } from "./api";
import type { Versions } from "./branches";
import { onEscape } from "./commands";
import type { Conversation } from "./conversation";
import type { Answer, Entry, Note, Said } from "./entries";
import { Sheet } from "./icons";
import { useLoaded } from "./loaded";
import { type Block, Markdown } from "./markdown";
import type { Offer, Offers } from "./offers";
import { canRead, readAloud, stopReading } from "./speech";
import { Store, useStore } from "./store";
import { visible } from "./text";
import { ToolCard } from "./tool_card";
import type { Part } from "./wire";
import { VirtualList } from "./virtual_list";
import { language, words } from "./words";

const nothing = new Store();

interface Props {
  conversation: Conversation;
  branch: (index: number, how: "edit" | "regenerate", content?: string) => Promise<void>;
  open: (id: string) => void;
  offers: Offers | undefined;
}

export function Transcript({ conversation, branch, open, offers }: Props) {
  useStore(offers ?? nothing);
  const actions = offers?.at("message_action") ?? [];
  const { entries, branches } = conversation;
  const places = branches.places(conversation.id);
  const last = entries.findLast((entry) => entry.kind === "answer");
  const readOlder = (): void => void conversation.attempt(conversation.readOlder());
  const busy = conversation.running;
  const waits = conversation.approvals.length > 0;
  return (
    <VirtualList
      first={conversation.firstPosition}
      count={entries.length}
      label={words.conversation}
      busy={busy}
      reachTop={readOlder}
      toEnd={(jump) => <button type="button" class="to-end" onClick={jump}>{words.toNewest}</button>}
      above={conversation.before !== null && <button type="button" class="more" onClick={readOlder}>{words.earlier}</button>}
      below={busy && <p class="working" role="status">{conversation.status || words.working}<span class="dots" aria-hidden="true" /></p>}
      draw={(at) => {
        const entry = entries[at];
        const place = places.find((index) => entries.find((one) => indexOf(one) >= index) === entry);
        const versions = place === undefined ? undefined : branches.versions(conversation.id, place);
        return entry && (
          <EntryView entry={entry} conversation={conversation} branch={branch} open={open} offers={offers} actions={actions} busy={busy || conversation.readOnly} waits={waits} isLast={entry === last} versions={versions} />
        );
      }}
    />
  );
}

function indexOf(entry: Entry): number {
  return "index" in entry ? (entry.index ?? -1) : -1;
}

interface EntryProps extends Props {
  entry: Entry;
  busy: boolean;
  waits: boolean;
  isLast: boolean;
  versions: Versions | undefined;
  actions: Offer[];
}

/** A row of the transcript; one that cannot have changed is not drawn again while others stream in. */
class EntryView extends Component<EntryProps> {
  override shouldComponentUpdate(next: EntryProps): boolean {
    const { entry, busy, waits, isLast, versions, actions } = this.props;
    const isSettled = entry.kind === "call" ? entry.state === "done" : entry.kind !== "answer" || !entry.live;
    const isSame = entry === next.entry && busy === next.busy && waits === next.waits && isLast === next.isLast && actions.length === next.actions.length;
    return !isSettled || !isSame || String(versions?.ids) !== String(next.versions?.ids);
  }

  override render({ entry, conversation, branch, open, busy, waits, isLast, versions, actions, offers }: EntryProps) {
    const switcher = versions && <VersionSwitch versions={versions} open={open} />;
    const more = (entry.kind === "said" || entry.kind === "answer") && actions.map((offer) => (
      <button key={`${offer.action.plugin} ${offer.action.id}`} type="button" onClick={() => offers?.begin(offer, { message_index: entry.index ?? 0, index: entry.index ?? 0 })}>{offer.label}</button>
    ));
    switch (entry.kind) {
      case "said":
        return <SaidView said={entry} busy={busy} branch={branch} edits={conversation.edits} session={conversation.id} versions={<>{switcher}{more}</>} />;
      case "answer":
        return <AnswerView answer={entry} busy={busy} isLast={isLast} branch={branch} conversation={conversation} versions={<>{switcher}{more}</>} />;
      case "call":
        // A version may begin with a call: there is its switch, and not at an answer that comes later.
        return (
          <>
            {switcher && !busy && <div class="tools">{switcher}</div>}
            <ToolCard call={entry} waits={waits} opened={conversation.opened} />
          </>
        );
      case "note":
        return <NoteView note={entry} retry={conversation.readOnly ? undefined : () => void conversation.attempt(conversation.start())} />;
    }
  }
}

interface SaidProps {
  said: Said;
  busy: boolean;
  branch: Props["branch"];
  edits: Map<number, string>;
  session: string;
  versions: ComponentChildren;
}

/** Leads to the other versions of a message: ‹ 2/3 ›. */
function VersionSwitch({ versions: { ids, at }, open }: { versions: Versions; open: (id: string) => void }) {
  return (
    <span class="branches" role="group" aria-label={words.versions}>
      <button type="button" disabled={at <= 0} aria-label={words.previousBranch} onClick={() => open(ids[at - 1] ?? "")}>‹</button>
      {at + 1}/{ids.length}
      <button type="button" disabled={at + 1 >= ids.length} aria-label={words.nextBranch} onClick={() => open(ids[at + 1] ?? "")}>›</button>
    </span>
  );
}

/** What an edit keeps and what it costs, before it is made. */
function EditPlan({ session, index }: { session: string; index: number }) {
  const { data } = useLoaded(() => client.readEditPlan(session, index), session, index);
  if (data === undefined) return null;
  const rebuilt = data.rebuilt_items > 0 ? ` ${words.editRebuilds(data.rebuilt_items)}` : "";
  return <p class="quiet edit-plan" role="status">{words.editPlan(data.kept_messages, data.kept_tokens.toLocaleString(language), data.other_messages)}{rebuilt}</p>;
}

function SaidView({ said, busy, branch, edits, session, versions }: SaidProps) {
  const { index } = said;
  const [edited, setText] = useState(edits.get(index ?? -1));
  const box = useRef<HTMLElement>(null);
  const next = useRef(""); // what gets the focus as soon as it is drawn: what had it is gone
  useLayoutEffect(() => {
    if (next.current) box.current?.querySelector<HTMLElement>(next.current)?.focus();
    next.current = "";
  });
  const setEdited = (text: string | undefined): void => {
    if (index === undefined) return;
    if (text === undefined) edits.delete(index);
    else edits.set(index, text); // the row may leave the screen and come back
    setText(text);
  };
  const leave = (): void => {
    next.current = ".edit";
    setEdited(undefined);
  };
  if (edited !== undefined && index !== undefined) {
    return (
      <form
        ref={box as preact.RefObject<HTMLFormElement>}
        class="said editing"
        onKeyDown={onEscape(leave)}
        onSubmit={(event) => {
          event.preventDefault();
          setEdited(undefined);
          void branch(index, "edit", edited);
        }}
      >
        <textarea aria-label={words.editedMessage} value={edited} rows={4} onInput={(event) => setEdited(event.currentTarget.value)} />
        <EditPlan session={session} index={index} />
        <div class="buttons">
          <button type="button" onClick={leave}>{words.cancel}</button>
          <button type="submit" class="primary" disabled={!edited.trim()}>{words.sendAsBranch}</button>
        </div>
      </form>
    );
  }
  return (
    <article class="said" aria-label={words.youSaid} ref={box}>
      <div class="bubble">
        <p class="plain" dir="auto">{visible(said.text)}</p>
        {said.parts.map((part, at) => <PartView key={at} part={part} />)}
      </div>
      {!busy && index !== undefined && (
        <div class="tools">
          {versions}
          <button
            type="button"
            class="edit"
            onClick={() => {
              next.current = "textarea";
              setEdited(said.text);
            }}
          >
            {words.edit}
          </button>
        </div>
      )}
    </article>
  );
}

function PartView({ part }: { part: Part }) {
  const isPicture = /^image\/(png|jpeg|gif|webp)$/.test(part.mime_type ?? "") && part.data;
  if (isPicture) return <img class="picture" alt={part.name ?? words.image} src={`data:${part.mime_type};base64,${part.data}`} />;
  return <p class="file"><Sheet /> {visible(part.name ?? part.type)}</p>;
}

interface AnswerProps {
  answer: Answer;
  busy: boolean;
  isLast: boolean;
  branch: Props["branch"];
  conversation: Conversation;
  versions: ComponentChildren;
}

function AnswerView({ answer, busy, isLast, branch, conversation, versions }: AnswerProps) {
  const { index } = answer;
  const article = useRef<HTMLElement>(null);
  /** Quote what is selected in the answer, or all of it. */
  const quote = (): void => {
    const selection = getSelection();
    const isInside = selection?.anchorNode && article.current?.contains(selection.anchorNode);
    const text = (isInside && selection.toString().trim()) || answer.text.trim();
    conversation.insert(`${text.replace(/^/gm, "> ")}\n\n`);
  };
  return (
    <article class="answer" aria-label={words.answer} ref={article}>
      {answer.reasoning && (
        <details class="reasoning">
          <summary>{words.reasoning}</summary>
          <p class="plain" dir="auto">{visible(answer.reasoning)}</p>
        </details>
      )}
      <MarkdownView text={answer.text} />
      {answer.interrupted && <p class="quiet">{words.interrupted}</p>}
      {!busy && index !== undefined && (
        <div class="tools">
          <CopyButton text={answer.text} />
          {versions}
          <button type="button" onClick={() => void branch(index, "regenerate")}>{words.answerAgain}</button>
          {isLast && answer.interrupted && <button type="button" onClick={() => void conversation.say(words.goOnMessage, [], [], "steer")}>{words.goOn}</button>}
          <button type="button" onClick={quote}>{words.quote}</button>
          {canRead && <ReadButton text={answer.text} />}
        </div>
      )}
    </article>
  );
}

function ReadButton({ text }: { text: string }) {
  const [reading, setReading] = useState(false);
  useEffect(() => () => stopReading(), []);
  const press = (): void => {
    if (reading) stopReading();
    else readAloud(text, () => setReading(false));
    setReading(!reading);
  };
  return <button type="button" aria-pressed={reading} onClick={press}>{reading ? words.stopReading : words.readAloud}</button>;
}

export function MarkdownView({ text }: { text: string }) {
  const markdown = useMemo(() => new Markdown(), []);
  return (
    <div class="markdown" dir="auto" onClick={copyCode}>
      {markdown.render(text).map((block, at) => <BlockView key={at} block={block} />)}
    </div>
  );
}

function BlockView({ block }: { block: Block }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (box.current) box.current.innerHTML = block.html as string; // sanitised, and of the type that the policy wants
  }, [block]);
  return <div class="block" ref={box} />;
}

/** Copy a block of code: its button came with the Markdown, where it cannot have a handler. */
function copyCode(event: MouseEvent): void {
  const button = event.target instanceof Element ? event.target.closest("button.copy") : null;
  const code = button?.closest(".code")?.querySelector("code")?.textContent;
  if (button && code !== undefined && code !== null) {
    void navigator.clipboard.writeText(code).then(() => {
      button.textContent = words.copied;
      setTimeout(() => (button.textContent = words.copy), 1500);
    });
  }
}

export function CopyButton({ text, label = words.copy }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(timer);
  }, [done]);
  return <button type="button" onClick={() => void navigator.clipboard.writeText(text).then(() => setDone(true))}>{done ? words.copied : label}</button>;
}

function NoteView({ note, retry }: { note: Note; retry: (() => void) | undefined }) {
  return (
    <div class={`note ${note.level}`} role={note.level === "error" ? "alert" : "status"}>
      <p class="plain">{visible(note.text)}</p>
      {note.retry && retry && <button type="button" onClick={retry}>{words.tryAgain}</button>}
    </div>
  );
}
