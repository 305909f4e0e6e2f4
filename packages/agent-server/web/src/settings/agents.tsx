import { useState } from "preact/hooks";
import { as, client, list, Problem, wordsOf } from "../api";
import { useLoaded } from "../loaded";
import { type Schema, SchemaFields } from "../schema_form";
import { words } from "../words";
import type { Json, JsonObject } from "../wire";

interface Agent {
  id: string;
  description: string;
  model: string;
  plugins: string[];
  delegates: string[];
  handoffs: string[];
  default: boolean;
}

/** What the settings say of an agent: as it holds, what can be changed here, and where each field stands. */
interface Declaration {
  id: string;
  declared: JsonObject;
  own: JsonObject | null;
  origins: { [field: string]: string };
}

interface Changed {
  id: string;
  before: JsonObject | null;
  applies: "now" | "restart";
  removed: boolean;
}

/** An agent that is being made or changed: `own` is what will be saved, `shown` what holds otherwise. */
interface Draft {
  id: string;
  isNew: boolean;
  own: JsonObject;
  shown: JsonObject;
  origins: { [field: string]: string };
}

export function Agents({ agentsChanged }: { agentsChanged: () => void }) {
  const { data, failure, reload } = useLoaded(() => list<Agent>(client.listAgents()));
  const schema = useLoaded(() => as<Schema>(client.readAgentSchema()));
  const [draft, setDraft] = useState<Draft>();
  const [changed, setChanged] = useState<Changed>();
  const [problem, setProblem] = useState("");
  const canChange = Object.keys(schema.data?.properties ?? {}).length > 0;

  const put = async (id: string, declared: JsonObject | null): Promise<Changed> => {
    const answer = as<Omit<Changed, "removed">>(declared === null ? client.removeAgent(id) : client.declareAgent(id, { declared }));
    const made = { ...(await answer), removed: declared === null };
    setDraft(undefined);
    reload();
    agentsChanged();
    return made;
  };
  const attempt = (work: () => Promise<void>): void => {
    setProblem("");
    work().catch((error: unknown) => setProblem(wordsOf(error)));
  };
  const open = (id: string, copy: boolean): void =>
    attempt(async () => {
      const found = await as<Declaration>(client.readAgent(id));
      if (copy) setDraft({ id: "", isNew: true, own: found.declared, shown: {}, origins: {} });
      else setDraft({ id, isNew: false, own: found.own ?? {}, shown: found.declared, origins: found.origins });
    });

  if (failure) return <p class="failure" role="alert">{failure}</p>;
  return (
    <>
      {canChange && !draft && <p><button type="button" class="primary" onClick={() => setDraft({ id: "", isNew: true, own: {}, shown: {}, origins: {} })}>{words.newAgent}</button></p>}
      {schema.data && !canChange && <p class="quiet">{words.agentsInCode}</p>}
      {changed && (
        <p role="status" class="changed">
          {changed.removed ? words.agentRemoved(changed.id) : changed.applies === "now" ? words.settingNow(changed.id) : words.settingRestart(changed.id)}{" "}
          <button type="button" onClick={() => attempt(async () => void (await put(changed.id, changed.before), setChanged(undefined)))}>{words.undo}</button>
        </p>
      )}
      {(problem || schema.failure) && <p class="failure" role="alert">{problem || schema.failure}</p>}
      {draft?.isNew && schema.data && <AgentForm draft={draft} schema={schema.data} cancel={() => setDraft(undefined)} save={async (id, own) => setChanged(await put(id, own))} />}
      <ul class="things">
        {data?.map((agent) => (
          <li key={agent.id}>
            <h3>{agent.id} {agent.default && <span class="badge">{words.defaultAgent}</span>}</h3>
            {draft && !draft.isNew && draft.id === agent.id && schema.data ? (
              <AgentForm draft={draft} schema={schema.data} cancel={() => setDraft(undefined)} save={async (id, own) => setChanged(await put(id, own))} />
            ) : (
              <AgentFacts agent={agent} />
            )}
            {canChange && !draft && (
              <p class="buttons">
                <button type="button" aria-label={words.changeOf(agent.id)} onClick={() => open(agent.id, false)}>{words.change}</button>
                <button type="button" aria-label={words.copyOf(agent.id)} onClick={() => open(agent.id, true)}>{words.copyAgent}</button>
                <button type="button" class="danger" aria-label={words.removeOf(agent.id)} onClick={() => attempt(async () => setChanged(await put(agent.id, null)))}>{words.remove}</button>
              </p>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function AgentFacts({ agent }: { agent: Agent }) {
  return (
    <>
      {agent.description && <p dir="auto">{agent.description}</p>}
      <dl class="facts">
        <Fact name={words.model} value={agent.model} />
        <Fact name={words.plugins} value={agent.plugins.join(", ")} />
        <Fact name={words.delegates} value={agent.delegates.join(", ")} />
        <Fact name={words.handoffs} value={agent.handoffs.join(", ")} />
      </dl>
    </>
  );
}

interface FormProps {
  draft: Draft;
  schema: Schema;
  cancel: () => void;
  save: (id: string, own: JsonObject) => Promise<void>;
}

/** The fields of an agent by the schema of the settings file; the server says at which field it does not fit. */
function AgentForm({ draft, schema, cancel, save }: FormProps) {
  const [id, setId] = useState(draft.id);
  const [own, setOwn] = useState(draft.own);
  const [failure, setFailure] = useState("");
  const [errors, setErrors] = useState<{ [field: string]: string }>({});
  const [busy, setBusy] = useState(false);
  const change = (name: string, value: Json | undefined): void => {
    const { [name]: _old, ...rest } = own;
    setOwn(value === undefined ? rest : { ...rest, [name]: value });
    setErrors(({ [name]: _error, ...others }) => others);
  };
  // What was taken back shows its default; what another file says is shown all the same.
  const behind = Object.fromEntries(Object.entries(draft.shown).filter(([name]) => !(name in draft.own)));
  const submit = async (): Promise<void> => {
    setBusy(true);
    setFailure("");
    setErrors({});
    try {
      await save(id.trim(), own);
    } catch (error) {
      setBusy(false);
      const found = error instanceof Problem ? fieldErrors(error) : {};
      setErrors(found);
      if (!Object.keys(found).some((name) => name in (schema.properties ?? {}))) setFailure(wordsOf(error));
    }
  };
  return (
    <form
      class="new-thing agent-form"
      aria-label={draft.isNew ? words.newAgent : words.changeOf(id)}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {draft.isNew && <label class="field"><span>{words.name}</span><input name="id" required pattern="[A-Za-z0-9_\-]+" maxLength={64} value={id} onInput={(event) => setId(event.currentTarget.value)} /></label>}
      <SchemaFields schema={schema} values={{ ...behind, ...own }} own={own} origins={draft.origins} errors={errors} change={change} />
      {failure && <p class="failure" role="alert">{failure}</p>}
      <p class="buttons">
        <button type="submit" class="primary" disabled={busy}>{words.save}</button>
        <button type="button" onClick={cancel}>{words.cancel}</button>
      </p>
    </form>
  );
}

/** Return what is wrong by field: a problem names it as `agents.ID.FIELD…`. */
function fieldErrors(problem: Problem): { [field: string]: string } {
  const found = problem.errors.map(({ field, message }) => [/^agents\.(?:"[^"]*"|[^.]+)\.([^.[]+)/.exec(field ?? "")?.[1] ?? "", message]);
  return Object.fromEntries(found);
}

export function Fact({ name, value }: { name: string; value: string }) {
  if (!value) return null;
  return <div><dt>{name}</dt><dd>{value}</dd></div>;
}
