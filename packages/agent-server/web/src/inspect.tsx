// The drawer for whoever wants to know what happened: events, times, tokens, plugins, and requests.

import { useState } from "preact/hooks";
import { as, asText, client, list } from "./api";
import type { Conversation } from "./conversation";
import { namesOf } from "./entries";
import { Cross } from "./icons";
import { useLoaded } from "./loaded";
import { oneLine, visible } from "./text";
import { Trace } from "./trace";
import { language, words } from "./words";
import type { Event, Json, Message } from "./wire";

const PAGE = 1000;
const SHOWN = 200;
const TABS = ["events", "trace", "tokens", "plugins", "request"] as const;
type Tab = (typeof TABS)[number];

export function Inspect({ conversation, close }: { conversation: Conversation; close: () => void }) {
  const [tab, setTab] = useState<Tab>("events");
  return (
    <aside class="inspect" aria-label={words.inspect} onKeyDown={(event) => event.key === "Escape" && close()}>
      <div class="inspect-head">
        <div role="tablist" aria-label={words.inspect}>
          {TABS.map((name) => (
            <button key={name} id={`tab-${name}`} type="button" role="tab" aria-selected={name === tab} aria-controls="inspected" onClick={() => setTab(name)}>{words.inspectTabs[name]}</button>
          ))}
        </div>
        <button type="button" class="icon" aria-label={words.close} onClick={close}><Cross /></button>
      </div>
      <div id="inspected" class="inspected" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        {tab === "plugins" ? <Plugins agent={conversation.info?.agent_id ?? null} /> : tab === "request" ? <Request conversation={conversation} /> : tab === "trace" ? <Trace conversation={conversation} /> : <Logged conversation={conversation} tab={tab} />}
      </div>
    </aside>
  );
}

/** Return the end of the log: the last thousand events. */
async function readLog(conversation: Conversation): Promise<Event[]> {
  const { last_event: last } = await as<{ last_event: number }>(client.readState(conversation.id));
  return client.loggedEvents(conversation.id, Math.max(0, last - PAGE), PAGE);
}

function Logged({ conversation, tab }: { conversation: Conversation; tab: Tab }) {
  const { data, failure, reload } = useLoaded(() => readLog(conversation), conversation.running, conversation.id);
  if (failure) return <p class="failure" role="alert">{failure}</p>;
  if (data === undefined) return null;
  return (
    <>
      <p class="buttons"><button type="button" onClick={reload}>{words.readAgain}</button></p>
      {tab === "events" ? <EventList events={data} /> : <Tokens events={data} />}
    </>
  );
}

function EventList({ events }: { events: Event[] }) {
  const [wanted, setWanted] = useState("");
  const found = events.filter((event) => JSON.stringify(event).toLowerCase().includes(wanted.toLowerCase()));
  return (
    <>
      <input type="search" aria-label={words.findEvent} placeholder={words.findEvent} onInput={(event) => setWanted(event.currentTarget.value)} />
      <ol class="events">{found.slice(-SHOWN).reverse().map((event) => <EventRow key={event.seq} event={event} />)}</ol>
    </>
  );
}

function EventRow({ event }: { event: Event }) {
  const [open, setOpen] = useState(false);
  const { type, seq, ...rest } = event;
  return (
    <li>
      <details onToggle={(toggled) => setOpen(toggled.currentTarget.open)}>
        <summary><code>{seq} {type}</code> <span class="quiet">{oneLine(JSON.stringify(rest), 80)}</span></summary>
        {open && <pre tabIndex={0}>{visible(JSON.stringify(rest, null, 2))}</pre>}
      </details>
    </li>
  );
}

interface Used {
  input_tokens?: number;
  cached_input_tokens?: number;
  output_tokens?: number;
  cost?: number;
}

/** The tokens of every request, and how much of it came from the provider's cache. */
function Tokens({ events }: { events: Event[] }) {
  const used = events.filter((event) => event.type === "usage");
  if (!used.length) return <p class="quiet">{words.noUsage}</p>;
  const number = (value: number | undefined): string => (value ?? 0).toLocaleString(language);
  return (
    <table class="tokens">
      <thead><tr><th>{words.model}</th><th>{words.sent}</th><th>{words.fromCache}</th><th>{words.received}</th><th>{words.cost}</th></tr></thead>
      <tbody>
        {used.map((event) => {
          const one = event["usage"] as Used;
          const share = one.input_tokens ? (one.cached_input_tokens ?? 0) / one.input_tokens : 0;
          return (
            <tr key={event.seq}>
              <td>{oneLine(String(event["model"]), 40)}</td>
              <td>{number(one.input_tokens)}</td>
              <td>{number(one.cached_input_tokens)} ({share.toLocaleString(language, { style: "percent" })})</td>
              <td>{number(one.output_tokens)}</td>
              <td>{one.cost ? one.cost.toFixed(4) : "–"}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

interface Decision {
  plugin: string;
  enabled: boolean;
  reason: string;
  detail?: string;
}

function Plugins({ agent }: { agent: string | null }) {
  const { data, failure } = useLoaded(() => list<Decision>(client.listPlugins({ agentId: agent })), agent);
  if (failure) return <p class="failure" role="alert">{failure}</p>;
  return (
    <ol class="plugin-order">
      {data?.map((one) => (
        <li key={one.plugin}>
          <strong>{one.plugin}</strong> <span class={one.enabled ? "good" : "quiet"}>{one.enabled ? words.on : words.off}</span>
          <span class="quiet"> {[one.reason.replaceAll("_", " "), one.detail].filter(Boolean).join(" · ")}</span>
        </li>
      ))}
    </ol>
  );
}

interface Preview {
  model: string;
  context_window: number | null;
  messages: (Message & { tokens: number })[];
  tools: { name: string; description: string; tokens: number }[];
  /** Of a request that was sent: it is made from what is stored, and the log says what it used. */
  rebuilt?: true;
  at?: number | null;
  usage?: Used | null;
}

/** What was sent for an answer, or what would be sent if somebody wrote now: after compaction, with what plugins add. */
function Request({ conversation }: { conversation: Conversation }) {
  const [chosen, setChosen] = useState<number>();
  const read = (): Promise<Preview> => as<Preview>(chosen === undefined ? client.readNextRequest(conversation.id) : client.readSentRequest(conversation.id, chosen));
  const { data, failure } = useLoaded(read, conversation.running, conversation.id, chosen);
  return (
    <>
      <label class="field">
        <span>{words.whichRequest}</span>
        <select value={chosen ?? ""} onChange={(event) => setChosen(event.currentTarget.value === "" ? undefined : Number(event.currentTarget.value))}>
          <option value="">{words.nextRequest}</option>
          {conversation.answers.slice(0, SHOWN).map(({ index, text }) => <option key={index} value={index}>{words.requestOf(index + 1, oneLine(text, 50))}</option>)}
        </select>
      </label>
      {failure && <p class="failure" role="alert">{failure}</p>}
      {data && <RequestView request={data} />}
    </>
  );
}

function RequestView({ request }: { request: Preview }) {
  const total = [...request.messages, ...request.tools].reduce((sum, one) => sum + one.tokens, 0);
  const number = (value: number): string => value.toLocaleString(language);
  const window = request.context_window ? ` / ${number(request.context_window)}` : "";
  const about = (tokens: number): string => `~${words.tokens(number(tokens))}`;
  const { usage } = request;
  return (
    <>
      {request.rebuilt && <p class="quiet">{words.rebuilt}{request.at ? ` ${words.sentAt(new Date(request.at * 1000).toLocaleString(language))}` : ""}</p>}
      <p>{request.model}: {about(total)}{window}</p>
      {usage?.input_tokens ? <p>{words.counted(number(usage.input_tokens), number(usage.cached_input_tokens ?? 0), number(usage.output_tokens ?? 0))}</p> : null}
      <ol class="events">
        {request.messages.map((message, at) => (
          <li key={at}>
            <details>
              <summary><code>{message.role}</code> <span class="quiet">{about(message.tokens)} · {oneLine(asText(message.content) || namesOf(message), 60)}</span></summary>
              <pre tabIndex={0}>{visible([asText(message.content), message.metadata?.tool_calls && asText(message.metadata.tool_calls as unknown as Json)].filter(Boolean).join("\n"))}</pre>
            </details>
          </li>
        ))}
        {request.tools.map((tool) => (
          <li key={tool.name}>
            <details>
              <summary><code>{words.toolName(tool.name)}</code> <span class="quiet">{about(tool.tokens)}</span></summary>
              <pre tabIndex={0}>{visible(tool.description)}</pre>
            </details>
          </li>
        ))}
      </ol>
    </>
  );
}
