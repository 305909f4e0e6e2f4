// What the page says, in the language that the browser prefers or that somebody chose.
//
// `words` is a live binding: read it while drawing, never into a constant of a module, so that the next drawing
// after a choice is in the new language.

import { english } from "./words/english";
import { german } from "./words/german";

export type Words = typeof english;

const CHOSEN = "language";
const CATALOGUES: { [code: string]: { name: string; words: Words } } = {
  en: { name: "English", words: english },
  de: { name: "Deutsch", words: german },
};

export let words: Words = english;
export let language = "en";

/** Return the languages that the page speaks: code and own name of each. */
export function languages(): [code: string, name: string][] {
  return Object.entries(CATALOGUES).map(([code, { name }]) => [code, name]);
}

function preferred(): string {
  const wanted = [localStorage.getItem(CHOSEN) ?? "", ...navigator.languages];
  const codes = wanted.map((one) => one.toLowerCase().split("-")[0] ?? "");
  return codes.find((code) => code in CATALOGUES) ?? "en";
}

export function chooseLanguage(code: string = preferred()): void {
  language = code in CATALOGUES ? code : "en";
  words = CATALOGUES[language]?.words ?? english;
  document.documentElement.lang = language;
}

/** Remember a choice; the page is drawn anew by whoever asked. */
export function keepLanguage(code: string): void {
  localStorage.setItem(CHOSEN, code);
  chooseLanguage(code);
}
