// Messages that were sent while the agent works and are not delivered yet: when each is read, edit, withdraw.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Conversation } from "./conversation";
import { textOf } from "./entries";
import { oneLine } from "./text";
import { words } from "./words";
import type { InputMode, Waiting } from "./wire";

export function WaitingMessages({ conversation }: { conversation: Conversation }) {
  if (!conversation.queued.length) return null;
  return (
    <ul class="queue" aria-label={words.waitingMessages}>
      {conversation.queued.map((one) => <WaitingMessage key={one.seq} waiting={one} conversation={conversation} />)}
    </ul>
  );
}

function WaitingMessage({ waiting, conversation }: { waiting: Waiting; conversation: Conversation }) {
  const [edited, setEdited] = useState<string>();
  const field = useRef<HTMLTextAreaElement>(null);
  const isEdited = edited !== undefined;
  useEffect(() => field.current?.focus(), [isEdited]);
  const text = textOf(waiting.message);
  const change = (now: string, mode: InputMode): void => {
    setEdited(undefined);
    void conversation.editWaiting(waiting, now, mode);
  };
  if (edited !== undefined) {
    return (
      <li>
        <form
          class="waiting-edit"
          onSubmit={(event) => {
            event.preventDefault();
            change(edited.trim(), waiting.mode);
          }}
        >
          <textarea
            aria-label={words.editedMessage}
            rows={2}
            value={edited}
            ref={field}
            onInput={(event) => setEdited(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Escape" && setEdited(undefined)}
          />
          <button type="submit" class="primary" disabled={!edited.trim()}>{words.save}</button>
          <button type="button" onClick={() => setEdited(undefined)}>{words.cancel}</button>
        </form>
      </li>
    );
  }
  return (
    <li>
      <select aria-label={words.whenRead} value={waiting.mode} onChange={(event) => change(text, event.currentTarget.value as InputMode)}>
        <option value="steer">{words.nextStep}</option>
        <option value="queue">{words.afterAnswer}</option>
        {waiting.mode === "interrupt" && <option value="interrupt">{words.atOnce}</option>}
      </select>
      <span class="words" dir="auto">{oneLine(text)}</span>
      <button type="button" onClick={() => setEdited(text)}>{words.edit}</button>
      <button type="button" onClick={() => void conversation.withdraw(waiting.seq)}>{words.withdraw}</button>
    </li>
  );
}
