// Markdown from models, tools and plugins as safe HTML.
//
// Three walls, each enough by itself: HTML in the text is shown as text; what marked makes goes through
// DOMPurify with a short list of what may stay; and the page's policy runs no inline script.

import DOMPurify from "dompurify";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { Marked, type Token, type TokensList } from "marked";
import { visible } from "./text";
import { words } from "./words";

const LANGUAGES = { bash, css, diff, go, javascript, json, python, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

const MOST_HIGHLIGHTED = 50_000;
const DEEPEST = /^(?:[ \t]*(?:>|[-*+]|\d{1,9}[.)])){40}/m;
const CLEAN = {
  ALLOWED_TAGS: (
    "p br strong em del code pre span a ul ol li blockquote h1 h2 h3 h4 h5 h6 table thead tbody tr th td hr " +
    "div button"
  ).split(" "),
  ALLOWED_ATTR: ["href", "title", "class", "target", "rel", "start", "align", "type", "dir", "tabindex"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_TRUSTED_TYPE: true,
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
}

/** Return an address that may be followed, in its plain spelling; undefined for all others. */
export function safeAddress(href: string): URL | undefined {
  try {
    const url = new URL(href);
    const known = ["http:", "https:", "mailto:"].includes(url.protocol);
    return known && !url.username && !url.password ? url : undefined;
  } catch {
    return undefined; // a relative address would lead into this server
  }
}

function link(href: string, label: string, plain: string): string {
  const url = safeAddress(href);
  if (url === undefined) return `${label} <span class="removed">${escaped(words.linkRemoved)}</span>`;
  const where = url.host || url.pathname;
  const says = plain.trim() === href || plain.trim() === url.href;
  const host = says ? "" : ` <span class="host">(${escaped(where)})</span>`;
  const attributes = `title="${escaped(url.href)}" target="_blank" rel="noopener noreferrer nofollow"`;
  return `<a href="${escaped(url.href)}" ${attributes}>${label}</a>${host}`;
}

function highlighted(code: string, language: string): string {
  const known = language !== "" && hljs.getLanguage(language) !== undefined;
  if (!known || code.length > MOST_HIGHLIGHTED) return escaped(code);
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}

const marked = new Marked({
  gfm: true,
  renderer: {
    html: ({ raw }) => escaped(raw),
    image: ({ href, text }) => link(href, escaped(text || words.image), text),
    link({ href, text, tokens }) {
      return link(href, this.parser.parseInline(tokens), text);
    },
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    code({ text, lang }) {
      const language = /^[\w+#-]{1,30}/.exec(lang ?? "")?.[0]?.toLowerCase() ?? "";
      const bar = `<div class="code-bar"><span>${escaped(language)}</span><button type="button" class="copy">${escaped(words.copy)}</button></div>`;
      return `<div class="code">${bar}<pre dir="ltr" tabindex="0"><code>${highlighted(text, language)}</code></pre></div>`;
    },
  },
});

export interface Block {
  source: string;
  html: TrustedHTML;
}

interface TrustedHTML {
  toString(): string;
}

function clean(html: string): TrustedHTML {
  return DOMPurify.sanitize(html, CLEAN) as unknown as TrustedHTML;
}

function asPlain(text: string): Piece[] {
  return [{ raw: text, block: { source: text, html: clean(`<p class="plain">${escaped(text)}</p>`) } }];
}

/** A piece of the source and, unless it shows nothing, its block. */
interface Piece {
  raw: string;
  block: Block | undefined;
}

const REREAD = 3; // so many pieces at the end may become something else when more text follows
const DEFINITION = /^ {0,3}\[[^\]]+\]:/m;

/** Markdown that grows: only its end is read again, and the blocks before keep their HTML. */
export class Markdown {
  private blocks: Block[] = [];
  private pieces: Piece[] = [];
  private source = "";
  private shown = "";

  /** Return the blocks of a text. */
  render(text: string): Block[] {
    if (text === this.source) return this.blocks;
    this.source = text;
    const now = visible(text);
    // A definition of a link counts for the whole text, also for what stands before it.
    const isLonger = this.shown !== "" && now.startsWith(this.shown) && !DEFINITION.test(now);
    this.pieces = this.parse(now, isLonger ? this.pieces.slice(0, -REREAD) : []);
    this.shown = now;
    this.blocks = this.pieces.flatMap((piece) => piece.block ?? []);
    return this.blocks;
  }

  private parse(text: string, kept: Piece[]): Piece[] {
    if (DEEPEST.test(text)) return asPlain(text); // nobody writes that, and a parser would choke on it
    try {
      const rest = text.slice(kept.reduce((length, piece) => length + piece.raw.length, 0));
      const tokens = marked.lexer(rest);
      const isWhole = tokens.reduce((length, token) => length + token.raw.length, 0) === rest.length;
      const known = new Map(this.pieces.slice(kept.length).map((piece) => [piece.raw, piece.block]));
      const read = tokens.map((token): Piece => ({ raw: token.raw, block: known.get(token.raw) ?? blockOf(token, tokens) }));
      // Where the parser has changed the text, its pieces do not say where the next one begins.
      return isWhole || !kept.length ? [...kept, ...read] : this.parse(text, []);
    } catch {
      return asPlain(text);
    }
  }
}

function blockOf(token: Token, all: TokensList): Block | undefined {
  if (token.type === "space" || token.type === "def") return undefined;
  return { source: token.raw, html: clean(marked.parser(Object.assign([token], { links: all.links }))) };
}
