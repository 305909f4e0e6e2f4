import { useEffect, useRef, useState } from "preact/hooks";
import { as, client, list, wordsOf } from "../api";
import { DisplayCard } from "../plugin_views";
import { visible } from "../text";
import { words } from "../words";
import type { ActionResult, Display, JsonObject } from "../wire";

const PLUGIN = "mcp_tools";

interface Server {
  server: string;
  state: string;
  tools: string[];
  problem: string;
  dropped: { [name: string]: string };
  waiting: string[];
  notes: string[];
}

/** Runs actions of the plugin. They need a session: one that is there, or one for as long as this is shown. */
class Fleet {
  private session: Promise<string> | undefined;
  private own: string | undefined;

  async act(action: string, params: JsonObject = {}): Promise<ActionResult & { servers?: Server[] }> {
    this.session ??= this.find();
    const session = await this.session;
    if (action === "status" && !(await this.isThere(session))) return { servers: [] };
    const answer = client.runSessionAction(session, PLUGIN, action, { params });
    return (await as<{ result: ActionResult }>(answer)).result;
  }

  /** An agent has the plugin only as soon as there is a server. */
  private async isThere(session: string): Promise<boolean> {
    const actions = await list<{ plugin: string }>(client.listSessionActions(session));
    return actions.some(({ plugin }) => plugin === PLUGIN);
  }

  private async find(): Promise<string> {
    const [latest] = (await client.listSessions({ limit: 1 })).items;
    this.own = latest ? undefined : (await client.createSession({})).id;
    return latest?.id ?? this.own ?? "";
  }

  close(): void {
    if (this.own) void client.deleteSession(this.own).catch(() => undefined);
  }
}

export function McpServers() {
  const fleet = useRef(new Fleet()).current;
  const [servers, setServers] = useState<Server[]>();
  const [display, setDisplay] = useState<Display>();
  const [said, setSaid] = useState("");
  const [failure, setFailure] = useState("");
  const [busy, setBusy] = useState("");
  useEffect(() => {
    void run("status");
    return () => fleet.close();
  }, []);

  const run = async (action: string, params: JsonObject = {}): Promise<void> => {
    setBusy(String(params["server"] ?? "*"));
    setFailure("");
    setSaid("");
    try {
      const result = await fleet.act(action, params);
      if (result.error?.message) setFailure(result.error.message);
      if (action !== "status") {
        setDisplay(result.display);
        setSaid(result.display ? "" : (result.message ?? ""));
      }
      setServers((await fleet.act("status")).servers ?? []);
    } catch (error) {
      setFailure(wordsOf(error));
    } finally {
      setBusy("");
    }
  };
  const change = async (name: string, value: JsonObject | null): Promise<void> => {
    const answer = await as<{ applies: string; problem?: string }>(client.changeSetting(`plugins.${PLUGIN}.servers.${name}`, { value }));
    if (answer.problem) throw new Error(answer.problem);
    await run("status");
    if (answer.applies !== "now") setSaid(words.serverRestart(name));
    else if (value !== null) await run("approve", { server: name }); // what would run is shown before it runs
  };

  return (
    <>
      {failure && <p class="failure" role="alert">{failure}</p>}
      {said && <p role="status">{visible(said)}</p>}
      {display && (
        <DisplayCard
          display={{ ...display, presentation: "inline" }}
          close={() => setDisplay((now) => (now === display ? undefined : now))} // its answer may be the next question
          run={(action) => run(action.action_id, action.params ?? {})}
        />
      )}
      {servers?.length === 0 && <p class="quiet">{words.noServers}</p>}
      <ul class="things">
        {servers?.map((one) => (
          <li key={one.server}>
            <h3>{one.server} <span class={one.state === "ready" ? "badge good" : "badge"}>{one.state}</span></h3>
            {one.tools.length > 0 && <p class="quiet">{words.tools}: {one.tools.join(", ")}</p>}
            {[one.problem, ...one.notes, ...Object.entries(one.dropped).map(([name, why]) => `${name}: ${why}`)].filter(Boolean).map((line) => (
              <p key={line} class="failure">{visible(line)}</p>
            ))}
            {one.waiting.length > 0 && <p class="warning">{words.waitsForApproval}: {one.waiting.join(", ")}</p>}
            <p class="buttons">
              {(one.state === "not approved" || one.waiting.length > 0) && (
                <button type="button" class="primary" disabled={busy !== ""} onClick={() => void run("approve", { server: one.server })}>{words.reviewAndApprove}</button>
              )}
              {one.state !== "not approved" && <button type="button" disabled={busy !== ""} onClick={() => void run("reconnect", { server: one.server })}>{words.testAndRestart}</button>}
              {one.state !== "not approved" && <button type="button" disabled={busy !== ""} onClick={() => void run("revoke", { server: one.server })}>{words.revoke}</button>}
              <button type="button" class="danger" disabled={busy !== ""} onClick={() => void change(one.server, null).catch((error: unknown) => setFailure(wordsOf(error)))}>{words.remove}</button>
              {busy === one.server && <span class="quiet" role="status">{words.testing}</span>}
            </p>
          </li>
        ))}
      </ul>
      <NewServer add={change} />
    </>
  );
}

function NewServer({ add }: { add: (name: string, value: JsonObject) => Promise<void> }) {
  const [failure, setFailure] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const data = new FormData(form);
    const text = (name: string): string => String(data.get(name) ?? "").trim();
    setBusy(true);
    setFailure("");
    try {
      await add(text("name"), declared(text("line"), text("values")));
      form.reset();
    } catch (error) {
      setFailure(wordsOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      class="new-thing"
      onSubmit={(event) => {
        event.preventDefault();
        void submit(event.currentTarget);
      }}
    >
      <h3>{words.addServer}</h3>
      <label class="field"><span>{words.name}</span><input name="name" required pattern="[A-Za-z0-9\-]+" maxLength={32} /></label>
      <label class="field"><span>{words.commandOrUrl}</span><input name="line" required placeholder="npx -y @scope/server  ·  https://host/mcp" /></label>
      <label class="field"><span>{words.serverValues}</span><textarea name="values" rows={2} placeholder="TOKEN=env:MY_TOKEN" /></label>
      {failure && <p class="failure" role="alert">{failure}</p>}
      <p class="buttons"><button type="submit" class="primary" disabled={busy}>{words.addServer}</button></p>
    </form>
  );
}

/** Return the declaration of a server from a command line or an address, and lines NAME=VALUE. */
function declared(line: string, values: string): JsonObject {
  const pairs = Object.fromEntries(
    values.split("\n").filter((one) => one.includes("=")).map((one) => [one.slice(0, one.indexOf("=")).trim(), one.slice(one.indexOf("=") + 1).trim()]),
  );
  const isUrl = /^https?:\/\//.test(line);
  const [command = "", ...args] = [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((found) => found[1] ?? found[2] ?? found[3] ?? "");
  const more: JsonObject = Object.keys(pairs).length ? { [isUrl ? "headers" : "env"]: pairs } : {};
  return isUrl ? { url: line, ...more } : { command, args, ...more };
}
