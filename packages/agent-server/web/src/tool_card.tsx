// A call of a tool: one line, and on demand its arguments, output, result or error.

import { useState } from "preact/hooks";
import { asText } from "./api";
import type { Call } from "./entries";
import { oneLine, visible } from "./text";
import type { Json, ToolDisplay } from "./wire";
import { words } from "./words";

const SIGNS = { writing: "…", waiting: "?", running: "▸", done: "✓" };

export function ToolCard({ call, waits, opened }: { call: Call; waits: boolean; opened: Set<string> }) {
  const [open, setOpen] = useState(opened.has(call.id));
  const toggle = (is: boolean): void => {
    if (is) opened.add(call.id);
    else opened.delete(call.id);
    setOpen(is);
  };
  const failed = call.result?.failed ?? false;
  const state = failed ? words.callFailed : call.state === "waiting" && !waits ? words.callNoResult : stateOf(call);
  return (
    <details class={failed ? "call failed" : `call ${call.state}`} open={open} onToggle={(event) => toggle(event.currentTarget.open)}>
      <summary>
        <span class="sign" aria-hidden="true">{failed ? "✗" : SIGNS[call.state]}</span>
        <span class="preview" dir="auto">{oneLine(call.preview || call.name)}</span>
        <span class="quiet">{state}{call.seconds !== undefined && call.seconds >= 0.1 ? ` · ${call.seconds.toFixed(1)} s` : ""}</span>
      </summary>
      {open && <Details call={call} />}
    </details>
  );
}

function stateOf({ state }: Call): string {
  return { writing: words.callWriting, waiting: words.callWaiting, running: words.callRunning, done: words.callDone }[state];
}

function Details({ call }: { call: Call }) {
  const result = call.result;
  return (
    <div class="call-body">
      <p class="heading">{call.name}</p>
      {call.display?.content ? <DisplayOfTool display={call.display} /> : null}
      {call.state === "writing" ? <Pre text={visible(call.written)} /> : <Arguments value={call.arguments} />}
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
