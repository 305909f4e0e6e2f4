// Suggestions of plugins for what is being written, above the composer.

import { useEffect, useRef, useState } from "preact/hooks";
import { as, client } from "./api";
import { oneLine } from "./text";
import { words } from "./words";
import type { Completion, JsonObject } from "./wire";

const TYPING_MS = 150;
const MOST = 8;

export interface Suggestions {
  items: Completion[];
  at: number;
  /** Ask for suggestions for the text before the cursor. */
  ask: (text: string) => void;
  move: (step: number) => void;
  close: () => void;
  /** Return the text before the cursor with the suggestion in it. */
  accept: (text: string, at?: number) => Promise<string>;
}

export function useSuggestions(session: string | undefined): Suggestions {
  const [items, setItems] = useState<Completion[]>([]);
  const [at, setAt] = useState(0);
  const timer = useRef(0);
  const asked = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const close = (): void => {
    asked.current += 1;
    clearTimeout(timer.current);
    setItems((now) => (now.length ? [] : now));
  };
  const ask = (text: string): void => {
    close();
    if (session === undefined || !text.trim()) return;
    const number = asked.current;
    timer.current = window.setTimeout(() => {
      as<{ items: Completion[] }>(client.complete(session, { text })).then((answer) => {
        if (number !== asked.current) return; // something else was typed since
        setItems(answer.items.filter((one) => one.replacement).slice(0, MOST));
        setAt(0);
      }, () => undefined);
    }, TYPING_MS);
  };
  const accept = async (text: string, chosen = at): Promise<string> => {
    const found = items[chosen];
    close();
    if (found === undefined || session === undefined) return text;
    const begin = Math.max(0, text.length + Math.min(found.start ?? 0, 0));
    const made = await as<{ text: string | null }>(client.complete(session, { text, completion: found as JsonObject })).catch(() => ({ text: null }));
    // A snippet may have places to fill in, as in ${1:name}: their names are what is shown.
    const inserted = (made.text || found.replacement || "").replace(/\$\{\d+:?([^}]*)\}/g, "$1");
    return text.slice(0, begin) + inserted;
  };
  return { items, at, ask, move: (step) => setAt((now) => (now + step + items.length) % Math.max(items.length, 1)), close, accept };
}

export function SuggestionList({ suggestions, take }: { suggestions: Suggestions; take: (at: number) => void }) {
  if (!suggestions.items.length) return null;
  return (
    <ul class="suggestions" id="suggestions" role="listbox" aria-label={words.suggestions}>
      {suggestions.items.map((one, at) => (
        <li key={at} id={`suggestion-${at}`} role="option" aria-selected={at === suggestions.at} onMouseDown={(event) => event.preventDefault()} onClick={() => take(at)}>
          <span dir="auto">{oneLine(one.display || one.replacement || "", 80)}</span> <span class="quiet">{oneLine(one.display_meta ?? "", 80)}</span>
        </li>
      ))}
    </ul>
  );
}
