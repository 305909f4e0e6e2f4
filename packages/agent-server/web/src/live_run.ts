// What a run shows before its messages are read: the entries that its events add up to.

import { type Answer, type Call, type Entry, entriesOf, newCall, resultOf } from "./entries";
import type { Event, Json, Message, ToolDisplay } from "./wire";
import { words } from "./words";

const LONGEST_OUTPUT = 20_000;

export class LiveRun {
  entries: Entry[] = [];
  /** What events have told of calls that messages do not: a line for people, what the tool shows, how long it took. */
  readonly known = new Map<string, Call>();
  private stepAt = 0;

  clear(): void {
    this.entries = [];
    this.stepAt = 0;
  }

  /** Show what a person said, before it is stored. */
  say(message: Message): void {
    this.entries = [...this.entries, ...entriesOf([message], this.known)];
    this.stepAt = this.entries.length;
  }

  /** Note that nobody runs a call any more. */
  lose(id: string): void {
    const call = this.known.get(id);
    if (call !== undefined) this.known.set(id, { ...call, state: "waiting" });
  }

  /** Note what an event says of a call. */
  remember(event: Event): void {
    const id = event["call_id"];
    if (typeof id !== "string") return;
    const call = this.known.get(id) ?? newCall(id, String(event["name"] ?? "tool"));
    if (event.type === "tool_call_start") {
      call.preview = String(event["preview"] ?? "");
      call.arguments = event["arguments"] as Json;
      call.display = (event["display"] as ToolDisplay | null) ?? undefined;
      call.output = ""; // a page that was loaded again hears it once more from here
      call.inner = undefined;
      call.state = "running";
    } else if (event.type === "tool_call_partial") {
      this.take(call, event["part"]);
    } else if (event.type === "tool_call_result") {
      call.result = resultOf(event["message"] as Message, event["is_error"] === true);
      call.seconds = event["seconds"] as number;
      call.state = "done";
    } else return;
    this.known.set(id, call);
  }

  /** Take what a tool shows while it works; what a delegate does is a run of its own. */
  private take(call: Call, part: unknown): void {
    const event = part as Event;
    if (typeof part === "object" && event?.type === "run_start") call.inner = new LiveRun();
    if (call.inner instanceof LiveRun) {
      call.inner.remember(event);
      call.inner.add(event);
    } else call.output = (call.output + partText(part)).slice(-LONGEST_OUTPUT);
  }

  /** Take an event of the run; the calls in it were remembered before. */
  add(event: Event): void {
    switch (event.type) {
      case "step_start":
        this.stepAt = this.entries.length;
        break;
      case "text":
        this.answer().text += String(event["text"]);
        break;
      case "reasoning":
        this.answer().reasoning += String(event["text"]);
        break;
      case "tool_call_args":
        this.write(event);
        break;
      case "tool_call_start":
      case "tool_call_partial":
      case "tool_call_result":
        this.place(String(event["call_id"]));
        break;
      case "retry":
      case "fallback":
        if (event["discarded"] === true) this.entries = this.entries.slice(0, this.stepAt); // it begins again
        break;
      case "handoff":
        this.entries = [...this.entries, { kind: "note", level: "info", text: words.handedOver(String(event["from_agent"]), String(event["to_agent"])), retry: false }];
        break;
      case "step_end":
        if (Array.isArray(event["messages"])) this.entries = [...this.entries.slice(0, this.stepAt), ...entriesOf(event["messages"] as Message[], this.known)];
        this.stepAt = this.entries.length;
        break;
    }
  }

  private answer(): Answer {
    const found = this.entries.slice(this.stepAt).find((entry) => entry.kind === "answer");
    if (found?.kind === "answer") return found;
    const begun: Answer = { kind: "answer", index: undefined, text: "", reasoning: "", live: true, interrupted: false };
    this.entries = [...this.entries, begun];
    return begun;
  }

  /** Take a piece of a call that the model is writing; its id may come with the first piece alone. */
  private write(event: Event): void {
    const id = `writing ${String(event["index"])}`;
    const found = this.entries.slice(this.stepAt).find((entry) => entry.kind === "call" && entry.id === id);
    let call = found?.kind === "call" ? found : undefined;
    if (call === undefined) {
      call = { ...newCall(id, String(event["name"] ?? "tool")), state: "writing" };
      this.entries = [...this.entries, call];
    }
    if (typeof event["name"] === "string") call.name = event["name"];
    call.written += String(event["arguments"] ?? "");
  }

  /** Show a call that runs, in place of the one that was being written. */
  private place(id: string): void {
    const call = this.known.get(id);
    if (call === undefined) return;
    const shown = this.entries.findIndex((entry) => entry.kind === "call" && entry.id === id);
    const written = this.entries.findIndex((entry) => entry.kind === "call" && entry.state === "writing" && entry.name === call.name);
    const at = shown >= 0 ? shown : written;
    this.entries = at < 0 ? [...this.entries, call] : this.entries.with(at, { ...call });
  }
}

/** Return what a tool shows while it works as text. */
function partText(part: unknown): string {
  if (typeof part === "string") return part;
  if (typeof part !== "object" || part === null) return "";
  const { content, text } = part as Record<string, unknown>;
  return typeof content === "string" ? content : typeof text === "string" ? text : "";
}
