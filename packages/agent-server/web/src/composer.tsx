// Where a person writes: a text, files, and how to send it while the agent works.

import { useEffect, useRef, useState } from "preact/hooks";
import { client } from "./api";
import { SuggestionList, useSuggestions } from "./completions";
import type { Conversation } from "./conversation";
import { Clip, Cross, Microphone } from "./icons";
import type { Offers } from "./offers";
import { Store, useStore } from "./store";
import type { InputMode, JsonObject } from "./wire";
import { canDictate, dictate } from "./speech";
import { words } from "./words";

/** A file that was chosen; it is stored in the session when the message is sent. */
export class Attachment {
  readonly name: string;
  readonly type: string;

  constructor(private readonly file: File) {
    this.name = file.name || words.pastedFile;
    this.type = file.type;
  }

  async attach(session: string): Promise<JsonObject> {
    const stored = await client.addAsset(session, this.file, { name: this.name });
    return { type: "asset", asset_id: stored.id };
  }
}

export interface Draft {
  text: string;
  files: Attachment[];
  mode: InputMode;
}

interface Props {
  conversation: Conversation | undefined;
  /** What plugins offer for what is being written. */
  offers: Offers | undefined;
  submit: (draft: Draft) => Promise<void>;
}

const nothing = new Store();

function draftName(conversation: Conversation | undefined): string {
  return `draft ${conversation?.id ?? "new"}`;
}

export function Composer({ conversation, offers, submit }: Props) {
  useStore(offers ?? nothing);
  const name = draftName(conversation);
  const [text, setText] = useState(() => localStorage.getItem(name) ?? "");
  /** Change the text, and keep it at once: the page may be gone before it is drawn again. */
  const write = (now: string): void => {
    setText(now);
    if (now) localStorage.setItem(name, now);
    else localStorage.removeItem(name);
  };
  const [files, setFiles] = useState<Attachment[]>([]);
  const [sending, setSending] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const running = conversation?.running ?? false;
  const hasSomething = text.trim() !== "" || files.length > 0;

  useEffect(() => {
    if (matchMedia("(min-width: 700px)").matches) field.current?.focus();
  }, []);
  const insert = (more: string): void => {
    const now = field.current?.value ?? "";
    write(now && !/\s$/.test(now) ? `${now} ${more}` : now + more);
    field.current?.focus();
  };
  if (conversation) {
    conversation.insert = insert;
    conversation.setInput = write;
  }
  useEffect(() => {
    const box = field.current;
    if (box === null) return;
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, 240)}px`;
  }, [text]);

  const put = async (mode: InputMode): Promise<void> => {
    if (!hasSomething || sending) return;
    setSending(true);
    suggestions.close();
    write("");
    setFiles([]);
    try {
      await submit({ text: text.trim(), files, mode });
    } catch {
      if (!field.current?.value) write(text); // nothing that was written gets lost
      setFiles(files);
    } finally {
      setSending(false);
      field.current?.focus();
    }
  };
  const add = (chosen: FileList | null | undefined): void => {
    if (chosen?.length) setFiles((now) => [...now, ...[...chosen].map((file) => new Attachment(file))]);
  };
  const suggestions = useSuggestions(conversation?.id);
  const take = async (at?: number): Promise<void> => {
    const box = field.current;
    if (box === null) return;
    const [before, after] = [box.value.slice(0, box.selectionStart), box.value.slice(box.selectionStart)];
    const now = await suggestions.accept(before, at);
    box.value = now + after; // at once, with the cursor: the next key may come before it is drawn
    box.setSelectionRange(now.length, now.length);
    write(now + after);
  };
  /** Take a key for the list of suggestions; false if it is not for it. */
  const pressInList = (key: string): boolean => {
    if (!suggestions.items.length) return false;
    if (key === "ArrowDown" || key === "ArrowUp") suggestions.move(key === "ArrowDown" ? 1 : -1);
    else if (key === "Tab") void take();
    else if (key === "Escape") suggestions.close();
    else return false;
    return true;
  };
  const press = (event: KeyboardEvent): void => {
    if (!event.isComposing && pressInList(event.key)) {
      event.preventDefault();
      return;
    }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      void put(event.altKey ? "queue" : "steer");
    } else if (event.key === "Escape" && running) {
      event.preventDefault();
      void conversation?.stop();
    }
  };

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void put("steer");
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        add(event.dataTransfer?.files);
      }}
    >
      {files.length > 0 && (
        <ul class="files" aria-label={words.attachedFiles}>
          {files.map((file) => (
            <li key={file}>
              {file.name}
              <button type="button" class="icon" aria-label={words.removeFile(file.name)} onClick={() => setFiles(files.filter((one) => one !== file))}><Cross /></button>
            </li>
          ))}
        </ul>
      )}
      <SuggestionList suggestions={suggestions} take={(at) => void take(at)} />
      <textarea
        id="composer"
        ref={field}
        rows={1}
        dir="auto"
        value={text}
        aria-label={words.message}
        placeholder={running ? words.messageHintRunning : words.messageHint}
        aria-autocomplete="list"
        aria-controls={suggestions.items.length ? "suggestions" : undefined}
        aria-activedescendant={suggestions.items.length ? `suggestion-${suggestions.at}` : undefined}
        onInput={(event) => {
          write(event.currentTarget.value);
          suggestions.ask(event.currentTarget.value.slice(0, event.currentTarget.selectionStart));
        }}
        onBlur={() => suggestions.close()}
        onKeyDown={press}
        onPaste={(event) => add(event.clipboardData?.files)}
      />
      <div class="buttons">
        <input
          ref={chooser}
          type="file"
          multiple
          hidden
          onChange={(event) => {
            add(event.currentTarget.files);
            event.currentTarget.value = "";
          }}
        />
        <button type="button" class="icon" aria-label={words.attachFiles} title={words.attachFiles} onClick={() => chooser.current?.click()}><Clip /></button>
        {canDictate() && <DictationButton insert={insert} />}
        {offers?.at("composer_action").map((offer) => (
          <button key={`${offer.action.plugin} ${offer.action.id}`} type="button" title={offer.element?.description} onClick={() => offers.begin(offer, { text })}>{offer.label}</button>
        ))}
        <span class="space" />
        {running && <button type="button" class="stop" onClick={() => void conversation?.stop()}>{words.stop}</button>}
        {running && hasSomething && <button type="button" onClick={() => void put("queue")}>{words.queue}</button>}
        <button type="submit" class="primary" disabled={!hasSomething || sending}>{running ? words.steer : words.send}</button>
      </div>
    </form>
  );
}

function DictationButton({ insert }: { insert: (text: string) => void }) {
  const stop = useRef<(() => void) | undefined>(undefined);
  const [listening, setListening] = useState(false);
  const newest = useRef(insert);
  newest.current = insert;
  useEffect(() => () => stop.current?.(), []);
  const press = (): void => {
    if (listening) stop.current?.();
    else stop.current = dictate((phrase) => newest.current(phrase), () => setListening(false));
    setListening(!listening);
  };
  const label = listening ? words.stopDictation : words.dictate;
  return <button type="button" class="icon" aria-pressed={listening} aria-label={label} title={label} onClick={press}><Microphone /></button>;
}
