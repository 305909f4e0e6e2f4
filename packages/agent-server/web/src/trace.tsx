// The runs of a session, one of them as a waterfall: what happened when, and for how long.

import { useState } from "preact/hooks";
import { client, type PastRun, type PastRuns, type TracePart } from "./api";
import type { Conversation } from "./conversation";
import { useLoaded } from "./loaded";
import { oneLine, visible } from "./text";
import { language, words } from "./words";

const WIDTH = 600;
const ROW = 20;

/** A run that somebody chooses, the last one at first. */
export function Trace({ conversation }: { conversation: Conversation }) {
  const [pages, setPages] = useState(1);
  const [chosen, setChosen] = useState<string>();
  const { data: runs, failure, reload } = useLoaded(() => readRuns(conversation.id, pages), conversation.running, conversation.id, pages);
  if (failure) return <p class="failure" role="alert">{visible(failure)}</p>;
  if (runs === undefined) return null;
  const run = runs.items.find((one) => one.run_id === chosen) ?? runs.items[0];
  if (run === undefined) return <p class="quiet">{words.noTrace}</p>;
  return (
    <>
      <label class="field">
        <span>{words.whichRun}</span>
        <select value={run.run_id} onChange={(event) => setChosen(event.currentTarget.value)}>
          {runs.items.map((one) => <option key={one.run_id} value={one.run_id}>{described(one)}</option>)}
        </select>
      </label>
      <p class="buttons">
        <button type="button" onClick={reload}>{words.readAgain}</button>
        {runs.before !== null && <button type="button" onClick={() => setPages(pages + 1)}>{words.earlierRuns}</button>}
      </p>
      <Waterfall session={conversation.id} run={run.run_id} state={runs} />
    </>
  );
}

async function readRuns(session: string, pages: number): Promise<PastRuns> {
  let found: PastRuns = { items: [], before: null };
  for (let page = 0; page < pages; page += 1) {
    const more = await client.listRuns(session, { before: found.before });
    found = { items: [...found.items, ...more.items], before: more.before };
    if (found.before === null) break;
  }
  return found;
}

function described(run: PastRun): string {
  const time = run.at === null ? "" : new Date(run.at * 1000).toLocaleString(language);
  const end = run.reason === null ? words.notEnded : run.reason.replaceAll("_", " ");
  return oneLine([time, run.agent_id, run.model, end].filter(Boolean).join(" · "), 120);
}

function Waterfall({ session, run, state }: { session: string; run: string; state: PastRuns }) {
  const { data, failure } = useLoaded(() => client.readTrace(session, run), session, run, state);
  if (failure) return <p class="failure" role="alert">{visible(failure)}</p>;
  if (data === undefined || data.run_id !== run) return null;
  const { parts } = data;
  const begin = Math.min(...parts.map((one) => one.begin));
  const end = Math.max(...parts.map((one) => one.end ?? one.begin), begin + 1e-6);
  const at = (time: number): number => ((time - begin) / (end - begin)) * WIDTH;
  const said = parts.map((part) => `${nameOf(part)} ${seconds(part)}`).join(", ");
  return (
    <svg class="chart waterfall" viewBox={`0 0 ${WIDTH} ${parts.length * ROW * 2}`} role="img" aria-label={`${words.inspectTabs.trace}: ${said}`}>
      {parts.map((part, row) => (
        <g key={row} transform={`translate(0 ${row * ROW * 2})`} class={part.note.startsWith("failed") ? "failed" : ""}>
          <title>{part.note}</title>
          <text x={part.depth * 12} y="14">{oneLine(nameOf(part), 60)}</text>
          <text x={WIDTH} y="14" text-anchor="end">{seconds(part)}</text>
          <rect x={at(part.begin)} y="20" width={Math.max(at(part.end ?? part.begin) - at(part.begin), 2)} height="10" rx="2" />
        </g>
      ))}
    </svg>
  );
}

function nameOf({ kind, name }: TracePart): string {
  return words.traceParts[kind](name);
}

function seconds({ begin, end }: TracePart): string {
  return end === null ? words.notEnded : `${(end - begin).toFixed(2)} s`;
}
