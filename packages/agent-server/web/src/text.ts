// Words for people.

import { language, words } from "./words";

// Marks that change the order or the look of what follows, and characters that do not show.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

/** Return a text in which nothing hides: what does not show, or turns text around, is written out. */
export function visible(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(UNSEEN, (one) => `[U+${code(one)}]`);
}

/** Say whether a text has something that a reader would not see. */
export function hides(text: string): boolean {
  return visible(text) !== text.replaceAll("\r\n", "\n");
}

function code(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
}

export function oneLine(text: string, most = 200): string {
  const line = visible(text).replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** Return a text in pieces, and of each whether it is one of the words that were searched for. */
export function withHits(text: string, query: string): [piece: string, isHit: boolean][] {
  const words = query.split(/[^\p{L}\p{N}]+/u).filter(Boolean).map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  if (!words.length) return [[text, false]];
  return text.split(new RegExp(`(${words.join("|")})`, "giu")).map((piece, at): [string, boolean] => [piece, at % 2 === 1]);
}

/** Return how long ago something was, in a word or two. */
export function ago(seconds: number): string {
  const minutes = (Date.now() / 1000 - seconds) / 60;
  if (minutes < 1) return words.now;
  if (minutes < 60) return words.minutes(Math.floor(minutes));
  if (minutes < 60 * 24) return words.hours(Math.floor(minutes / 60));
  if (minutes < 60 * 24 * 30) return words.days(Math.floor(minutes / 60 / 24));
  return new Date(seconds * 1000).toLocaleDateString(language);
}
