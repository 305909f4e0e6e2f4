// What was said, from the top to the newest.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Conversation } from "./conversation";
import type { Answer, Entry, Note, Said } from "./entries";
import { Sheet } from "./icons";
import { type Block, Markdown } from "./markdown";
import { visible } from "./text";
import { ToolCard } from "./tool_card";
import type { Part } from "./wire";
import { words } from "./words";

const NEAR_END = 80;

interface Props {
  conversation: Conversation;
  branch: (index: number, how: "edit" | "regenerate", content?: string) => Promise<void>;
}

export function Transcript({ conversation, branch }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const entries = conversation.entries;

  useLayoutEffect(() => {
    // Whoever reads further up is left there.
    if (atEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  });

  const readOlder = async (): Promise<void> => {
    const height = box.current?.scrollHeight ?? 0;
    atEnd.current = false;
    await conversation.attempt(conversation.readOlder());
    requestAnimationFrame(() => {
      if (box.current) box.current.scrollTop += box.current.scrollHeight - height;
    });
  };

  return (
    <div
      class="transcript"
      ref={box}
      role="log"
      aria-live="off"
      aria-label={words.conversation}
      aria-busy={conversation.running}
      tabIndex={0}
      onScroll={(event) => {
        const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
        atEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_END;
      }}
    >
      {conversation.before !== null && <button type="button" class="more" onClick={() => void readOlder()}>{words.earlier}</button>}
      {entries.map((entry, at) => (
        <EntryView key={conversation.firstPosition + at} entry={entry} conversation={conversation} branch={branch} />
      ))}
      {conversation.running && <p class="working" role="status">{conversation.status || words.working}<span class="dots" aria-hidden="true" /></p>}
    </div>
  );
}

function EntryView({ entry, conversation, branch }: Props & { entry: Entry }) {
  switch (entry.kind) {
    case "said":
      return <SaidView said={entry} busy={conversation.running} branch={branch} />;
    case "answer":
      return <AnswerView answer={entry} busy={conversation.running} branch={branch} />;
    case "call":
      return <ToolCard call={entry} waits={conversation.approvals.length > 0} />;
    case "note":
      return <NoteView note={entry} retry={() => void conversation.attempt(conversation.start())} />;
  }
}

function SaidView({ said, busy, branch }: { said: Said; busy: boolean; branch: Props["branch"] }) {
  const [edited, setEdited] = useState<string>();
  const { index } = said;
  if (edited !== undefined && index !== undefined) {
    return (
      <form
        class="said editing"
        onSubmit={(event) => {
          event.preventDefault();
          setEdited(undefined);
          void branch(index, "edit", edited);
        }}
      >
        <textarea aria-label={words.editedMessage} value={edited} rows={4} onInput={(event) => setEdited(event.currentTarget.value)} />
        <div class="buttons">
          <button type="button" onClick={() => setEdited(undefined)}>{words.cancel}</button>
          <button type="submit" class="primary" disabled={!edited.trim()}>{words.sendAsBranch}</button>
        </div>
      </form>
    );
  }
  return (
    <article class="said" aria-label={words.youSaid}>
      <div class="bubble">
        <p class="plain" dir="auto">{visible(said.text)}</p>
        {said.parts.map((part, at) => <PartView key={at} part={part} />)}
      </div>
      {!busy && index !== undefined && (
        <div class="tools"><button type="button" onClick={() => setEdited(said.text)}>{words.edit}</button></div>
      )}
    </article>
  );
}

function PartView({ part }: { part: Part }) {
  const isPicture = /^image\/(png|jpeg|gif|webp)$/.test(part.mime_type ?? "") && part.data;
  if (isPicture) return <img class="picture" alt={part.name ?? words.image} src={`data:${part.mime_type};base64,${part.data}`} />;
  return <p class="file"><Sheet /> {visible(part.name ?? part.type)}</p>;
}

function AnswerView({ answer, busy, branch }: { answer: Answer; busy: boolean; branch: Props["branch"] }) {
  const { index } = answer;
  return (
    <article class="answer" aria-label={words.answer}>
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
          <button type="button" onClick={() => void branch(index, "regenerate")}>{words.answerAgain}</button>
        </div>
      )}
    </article>
  );
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

function NoteView({ note, retry }: { note: Note; retry: () => void }) {
  return (
    <div class={`note ${note.level}`} role={note.level === "error" ? "alert" : "status"}>
      <p class="plain">{visible(note.text)}</p>
      {note.retry && <button type="button" onClick={retry}>{words.tryAgain}</button>}
    </div>
  );
}
