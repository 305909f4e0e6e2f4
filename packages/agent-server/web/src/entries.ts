// What a transcript shows, and how messages become it.

import { asText } from "./api";
import type { Json, Message, Part, ToolCall, ToolDisplay } from "./wire";

export interface Said {
  kind: "said";
  index: number | undefined;
  text: string;
  parts: Part[];
}

export interface Answer {
  kind: "answer";
  index: number | undefined;
  text: string;
  reasoning: string;
  live: boolean;
  interrupted: boolean;
}

export interface Call {
  kind: "call";
  index: number | undefined; // of the message that calls
  id: string;
  name: string;
  preview: string;
  arguments: Json | undefined;
  written: string; // the arguments while the model writes them
  display: ToolDisplay | undefined;
  output: string; // what the tool shows while it works
  inner: { entries: Entry[] } | undefined; // the run of another agent that the call has begun
  result: { text: string; display: ToolDisplay | undefined; failed: boolean } | undefined;
  seconds: number | undefined;
  state: "writing" | "waiting" | "running" | "done";
}

export interface Note {
  kind: "note";
  level: "info" | "warning" | "error";
  text: string;
  retry: boolean;
}

export type Entry = Said | Answer | Call | Note;

export function textOf(message: Message): string {
  const parts = message.multipartContent ?? [];
  if (typeof message.content === "string") return message.content;
  const texts = parts.filter((part) => part.type === "text").map((part) => part.text ?? "");
  return texts.length ? texts.join("\n") : message.content === null ? "" : asText(message.content);
}

/** Return the names of the tools that a message calls. */
export function namesOf(message: Message): string {
  return (message.metadata?.tool_calls ?? []).map((call) => call.function?.name ?? call.custom?.name ?? "").join(", ");
}

export function newCall(id: string, name: string): Call {
  return {
    kind: "call",
    index: undefined,
    id,
    name,
    preview: "",
    arguments: undefined,
    written: "",
    display: undefined,
    output: "",
    inner: undefined,
    result: undefined,
    seconds: undefined,
    state: "waiting",
  };
}

function parsed(written: string): Json {
  try {
    return JSON.parse(written) as Json;
  } catch {
    return written;
  }
}

export function callOf(call: ToolCall, id: string): Call {
  const about = call.function ?? call.custom ?? {};
  const written = call.function?.arguments ?? call.custom?.input ?? "";
  return { ...newCall(id, about.name ?? "tool"), arguments: parsed(asText(written)) };
}

/** Return what a tool message says of its call. */
export function resultOf(message: Message, failed: boolean): NonNullable<Call["result"]> {
  const structured = message.tool_result;
  return {
    text: textOf(message),
    display: message.metadata?.display ?? structured?.display,
    failed: failed || structured?.is_error === true || message.metadata?.is_error === true,
  };
}

/** Return messages as entries; of calls that were seen live, what is known besides is kept. */
export function entriesOf(messages: Message[], known: ReadonlyMap<string, Call>): Entry[] {
  const entries: Entry[] = [];
  const calls = new Map<string, Call>();
  messages.forEach((message, at) => {
    if (message.role === "user") {
      const parts = (message.multipartContent ?? []).filter((part) => part.type !== "text");
      entries.push({ kind: "said", index: message.index, text: textOf(message), parts });
    } else if (message.role === "assistant") {
      entries.push(...answersOf(message));
      (message.metadata?.tool_calls ?? []).forEach((asked, number) => {
        const id = asked.id ?? `${message.index ?? at}.${number}`;
        const seen = known.get(id);
        const call = { ...callOf(asked, id), ...seen, index: message.index };
        calls.set(id, call);
        entries.push(call);
      });
    } else if (message.role === "tool") {
      const id = message.metadata?.tool_call_id ?? `${message.index ?? at}`;
      let call = calls.get(id);
      if (call === undefined) {
        call = { ...newCall(id, message.metadata?.tool_name ?? "tool"), ...known.get(id) };
        calls.set(id, call);
        entries.push(call);
      }
      call.result = resultOf(message, call.result?.failed ?? false);
      call.state = "done";
    }
  });
  return entries;
}

function answersOf(message: Message): Answer[] {
  const text = textOf(message);
  const reasoning = typeof message.metadata?.reasoning === "string" ? message.metadata.reasoning : "";
  const interrupted = message.metadata?.interrupted !== undefined;
  if (!text && !reasoning && !interrupted) return [];
  return [{ kind: "answer", index: message.index, text, reasoning, live: false, interrupted }];
}
