import { client, list } from "../api";
import { useLoaded } from "../loaded";
import { words } from "../words";

interface Agent {
  id: string;
  description: string;
  model: string;
  plugins: string[];
  delegates: string[];
  handoffs: string[];
  default: boolean;
}

export function Agents() {
  const { data, failure } = useLoaded(() => list<Agent>(client.listAgents()));
  if (failure) return <p class="failure" role="alert">{failure}</p>;
  return (
    <ul class="things">
      {data?.map((agent) => (
        <li key={agent.id}>
          <h3>{agent.id} {agent.default && <span class="badge">{words.defaultAgent}</span>}</h3>
          {agent.description && <p dir="auto">{agent.description}</p>}
          <dl class="facts">
            <Fact name={words.model} value={agent.model} />
            <Fact name={words.plugins} value={agent.plugins.join(", ")} />
            <Fact name={words.delegates} value={agent.delegates.join(", ")} />
            <Fact name={words.handoffs} value={agent.handoffs.join(", ")} />
          </dl>
        </li>
      ))}
    </ul>
  );
}

export function Fact({ name, value }: { name: string; value: string }) {
  if (!value) return null;
  return <div><dt>{name}</dt><dd>{value}</dd></div>;
}
