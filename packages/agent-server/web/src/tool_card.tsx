// A call of a tool: one line, and on demand its arguments, output, result or error.

import { useState } from "preact/hooks";
import { asText } from "./api";
import type { Call, Entry } from "./entries";
import { oneLine, visible } from "./text";
import type { Json, ToolDisplay } from "./wire";
import { words } from "./words";

const SIGNS = { writing: "…", waiting: "?", running: "▸", done: "✓" };

interface Props {
  call: Call;
  waits: boolean;
  /** Which cards are open; those of a delegate's calls are known by the calls around them, too. */
  opened: Set<string>;
  within?: string;
}

export function ToolCard({ call, waits, opened, within = "" }: Props) {
  const place = `${within}/${call.id}`;
  const [open, setOpen] = useState(opened.has(place));
  const toggle = (is: boolean): void => {
    if (is) opened.add(place);
    else opened.delete(place);
    setOpen(is);
  };
  const failed = call.result?.failed ?? false;
  const state = failed ? words.callFailed : call.state === "waiting" && !waits ? words.callNoResult : stateOf(call);
  return (
    <details class={failed ? "call failed" : `call ${call.state}`} open={open} onToggle={(event) => toggle(event.currentTarget.open)}>
      {/* Noted at once: the toggle event comes later, and is lost if the row is drawn anew in between. */}
      <summary onClick={(event) => { event.preventDefault(); toggle(!open); }}>
        <span class="sign" aria-hidden="true">{failed ? "✗" : SIGNS[call.state]}</span>
        <span class="preview" dir="auto">{oneLine(call.preview || call.name)}{call.state === "running" && call.inner ? ` › ${latest(call.inner.entries)}` : ""}</span>
        <span class="quiet">{state}{call.seconds !== undefined && call.seconds >= 0.1 ? ` · ${call.seconds.toFixed(1)} s` : ""}</span>
      </summary>
      {open && <Details call={call} opened={opened} place={place} />}
    </details>
  );
}

function stateOf({ state }: Call): string {
  return { writing: words.callWriting, waiting: words.callWaiting, running: words.callRunning, done: words.callDone }[state];
}

/** Return what a delegate does just now, in a few words. */
function latest(entries: Entry[]): string {
  const last = entries.at(-1);
  if (last === undefined) return words.working;
  return oneLine(last.kind === "call" ? last.preview || last.name : last.text, 80);
}

/** What a delegate has said and called, as a small transcript of its own. */
function Inner({ entries, opened, place }: { entries: Entry[]; opened: Set<string>; place: string }) {
  return (
    <div class="inner" role="group" aria-label={words.insideCall}>
      {entries.map((entry, at) =>
        entry.kind === "call" ? <ToolCard key={at} call={entry} waits={false} opened={opened} within={place} /> : <p key={at} class="plain" dir="auto">{visible(entry.text)}</p>,
      )}
    </div>
  );
}

function Details({ call, opened, place }: { call: Call; opened: Set<string>; place: string }) {
  const result = call.result;
  return (
    <div class="call-body">
      <p class="heading">{call.name}</p>
      {call.display?.content ? <DisplayOfTool display={call.display} /> : null}
      {call.state === "writing" ? <Pre text={visible(call.written)} /> : <Arguments value={call.arguments} />}
      {call.inner && <Inner entries={call.inner.entries} opened={opened} place={place} />}
      {call.output && <><p class="heading">{words.output}</p><Pre text={visible(call.output)} /></>}
      {result && <p class="heading">{result.failed ? words.error : words.result}</p>}
      {result && (result.display?.content ? <DisplayOfTool display={result.display} /> : <Pre text={visible(result.text)} />)}
    </div>
  );
}

/** Text as it is; a keyboard can scroll it. */
function Pre({ text }: { text: string }) {
  return <pre tabIndex={0}>{text}</pre>;
}

/** The arguments of a call, each whole. */
export function Arguments({ value }: { value: Json | undefined }) {
  if (value === undefined || value === null) return null;
  if (typeof value !== "object" || Array.isArray(value)) return <Pre text={visible(asText(value))} />;
  return (
    <dl class="arguments">
      {Object.entries(value).map(([name, one]) => (
        <div key={name}>
          <dt>{visible(name)}</dt>
          <dd><Pre text={visible(asText(one))} /></dd>
        </div>
      ))}
    </dl>
  );
}

/** What a tool shows; as it is written, since what styling hides may matter. */
export function DisplayOfTool({ display }: { display: ToolDisplay }) {
  const text = visible(asText(display.content));
  return (
    <figure class="display">
      {display.title && <figcaption>{oneLine(display.title)}</figcaption>}
      {display.type === "diff" ? <Diff text={text} /> : <Pre text={text} />}
    </figure>
  );
}

function Diff({ text }: { text: string }) {
  return (
    <pre class="diff" tabIndex={0}>
      {text.split("\n").map((line, at) => {
        const kind = /^(---|\+\+\+) /.test(line) ? "place" : line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : line.startsWith("@") ? "place" : "";
        return <span key={at} class={kind}>{`${line}\n`}</span>;
      })}
    </pre>
  );
}
