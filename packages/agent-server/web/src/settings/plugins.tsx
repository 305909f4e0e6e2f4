import { useState } from "preact/hooks";
import { client, list } from "../api";
import { useLoaded } from "../loaded";
import { visible } from "../text";
import { words } from "../words";

interface Decision {
  plugin: string;
  kind?: string;
  enabled: boolean;
  reason: string;
  detail?: string;
  problems?: string[];
}

/** Which plugins an agent has, in the order in which they act, and why each is on or off. */
export function Plugins() {
  const [agent, setAgent] = useState("");
  const agents = useLoaded(() => list<{ id: string }>(client.listAgents()));
  const { data, failure } = useLoaded(() => list<Decision>(client.listPlugins({ agentId: agent || null })), agent);
  return (
    <>
      {(agents.data?.length ?? 0) > 1 && (
        <label class="field">
          <span>{words.agent}</span>
          <select value={agent} onChange={(event) => setAgent(event.currentTarget.value)}>
            <option value="">{words.defaultAgent}</option>
            {agents.data?.map(({ id }) => <option key={id} value={id}>{id}</option>)}
          </select>
        </label>
      )}
      {failure && <p class="failure" role="alert">{failure}</p>}
      <ul class="things">
        {data?.map((one) => (
          <li key={one.plugin}>
            <h3>{one.plugin} <span class={one.enabled ? "badge good" : "badge"}>{one.enabled ? words.on : words.off}</span></h3>
            <p class="quiet">{[one.kind, one.reason.replaceAll("_", " "), one.detail].filter(Boolean).join(" · ")}</p>
            {one.problems?.map((problem) => <p key={problem} class="failure">{visible(problem)}</p>)}
          </li>
        ))}
      </ul>
    </>
  );
}
