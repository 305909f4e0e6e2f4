// Runs as a waterfall: what happened when and for how long, from the logged events of a session alone.

import type { Event } from "./wire";
import { words } from "./words";

export interface Span {
  depth: number;
  name: string;
  begin: number;
  end: number | undefined;
  note: string;
}

export interface TracedRun {
  name: string;
  spans: Span[];
}

/** Return the runs whose times are in the log. */
export function traceOf(events: Event[]): TracedRun[] {
  const runs: TracedRun[] = [];
  let open = new Map<string, Span>();
  const begin = (key: string, depth: number, name: string, at: number): void => {
    const span = { depth, name, begin: at, end: undefined, note: "" };
    open.set(key, span);
    runs.at(-1)?.spans.push(span);
  };
  const end = (key: string, at: number, note = ""): void => {
    const span = open.get(key);
    if (span === undefined) return;
    span.end = at;
    span.note = note || span.note;
    open.delete(key);
  };
  for (const event of events) {
    const at = typeof event["at"] === "number" ? event["at"] : undefined;
    if (event.type === "run_start") {
      open = new Map();
      runs.push({ name: String(event["agent_id"] ?? ""), spans: [] });
      if (at !== undefined) begin("run", 0, words.traceRun(String(event["agent_id"])), at);
    } else if (event.type === "final" || event.type === "turn_end") {
      const last = Math.max(...(runs.at(-1)?.spans.map((one) => one.end ?? one.begin) ?? [0]));
      for (const key of [...open.keys()]) end(key, last);
    } else if (at === undefined) continue;
    else if (event.type === "step_start") {
      begin("step", 1, words.traceStep(String(event["round"])), at);
      begin("model", 2, words.model, at);
    } else if (event.type === "tool_call_start") begin(String(event["call_id"]), 2, String(event["name"]), at);
    else if (event.type === "tool_call_result") end(String(event["call_id"]), at, event["is_error"] === true ? "failed" : "");
    else if (event.type === "usage") end("model", at);
    else if (event.type === "step_end") {
      end("model", at);
      end("step", at);
    } else if (event.type === "run_end" || event.type === "error") for (const key of [...open.keys()]) end(key, at);
  }
  return runs.filter((run) => run.spans.length);
}
