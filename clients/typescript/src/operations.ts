// Written by tools/typescript_client.py from docs/reference/openapi.json: change those, and run it again.

import { Transport, type Json } from "./transport";

/** The inputs of an action. */
export interface ActionCall {
  /** Whether somebody said yes to the question that it asks first. */
  confirmed?: boolean;
  params?: { [name: string]: Json };
}

/** What an action came to; its `display` is what to show. */
export interface ActionResult {
  result: { [name: string]: Json };
}

/** An agent as it should be declared from now on. */
export interface AgentChange {
  /** All fields that are set here; the others have defaults. */
  declared: { [name: string]: Json };
}

/** What was changed, and when it counts. */
export interface AgentChanged {
  applies: "now" | "restart";
  /** What was declared here before, to undo it. */
  before: { [name: string]: Json } | null;
  id: string;
  /** Where it stands, or stood. */
  origin: string;
}

/** What the settings say of an agent; empty if they say nothing of it. */
export interface AgentDeclaration {
  /** Its fields as they hold; see /v1/settings/schema/agent. */
  declared: { [name: string]: Json };
  id: string;
  /** Where each field stands. */
  origins: { [name: string]: string };
  /** Those that can be changed here; null if there are none. */
  own: { [name: string]: Json } | null;
}

/** A key, with its secret when it is made. */
export interface ApiKey {
  created: number;
  expires: number | null;
  id: string;
  name: string;
  person: string;
  revoked: number | null;
  scope: string;
  secret?: string | null;
}

/** A decision that a run waits for. */
export interface Approval {
  created: number;
  decision: { [name: string]: Json } | null;
  id: string;
  session_id: string;
  /** What is asked, with the call and perhaps a schema. */
  suspension: { [name: string]: Json };
  used: boolean;
}

/** A file of a session. */
export interface Asset {
  created: number;
  id: string;
  media_type: string;
  name: string;
  session_id: string;
  sha256: string;
  size: number;
}

/** The files of a session. */
export interface AssetList {
  items: Asset[];
}

/** What should answer from now on. */
export interface Choice {
  /** Try it before anything is saved: it lists its models, and the embedded one says a word. */
  check?: boolean;
  /** Without it, the one that was found. */
  key?: string | null;
  /** Without it, the recommended one. */
  model?: string | null;
  /** A connection of the list. */
  name?: string | null;
  /** The address of a server of your own. */
  url?: string | null;
}

/** The text before the cursor. */
export interface CompletionRequest {
  /** A suggestion that was accepted: its text is returned in place of a list. */
  completion?: { [name: string]: Json } | null;
  text: string;
}

/** Suggestions, or the text of an accepted one. */
export interface Completions {
  items?: { [name: string]: Json }[];
  text?: string | null;
}

/** Something that can answer. */
export interface Connection {
  /** What was found here: a key, or a server that answers. */
  found: string | null;
  label: string;
  name: string;
  needs_address: boolean;
  needs_key: boolean;
}

/** What can answer, the found ones first. */
export interface Connections {
  items: Connection[];
  /** Whether nobody has chosen a model yet. */
  needed: boolean;
}

/** What was decided. */
export interface Decision {
  approved?: boolean | null;
  /** Start a run that continues with it. */
  go_on?: boolean;
  /** Count it for later calls as well. */
  grant?: GrantWith | null;
  /** What the model hears if it was refused. */
  reason?: string | null;
  /** The answer, where one was asked for. */
  value?: Json;
}

/** Another version of a message. */
export interface Edit {
  content: string;
}

/** What a branch would keep that begins with another version of a message. */
export interface EditPlan {
  /** Those before it: they are sent as they were. */
  kept_messages: number;
  /** An estimate, with the agent's instructions. */
  kept_tokens: number;
  /** Those behind it: they stay in this session. */
  other_messages: number;
  /** Items of the provider's own history that would be made again. */
  rebuilt_items: number;
}

/** Where a session branches off. */
export interface Fork {
  /** Another agent for the branch. */
  agent_id?: string | null;
  /** The last message of the branch; may count from the end, as in -1. */
  upto_index: number;
}

/** A permission that was given, or refused, for longer than one call. */
export interface Grant {
  created: number;
  effect: "allow" | "deny";
  id: string;
  key: string;
  note: string;
  pattern: string;
  scope: "session" | "project" | "always";
}

/** What is granted together with a decision. */
export interface GrantWith {
  pattern?: string | null;
  scope: "session" | "project" | "always";
}

/** Somebody to invite to a session. */
export interface Invitation {
  email: string;
  role?: "viewer" | "editor";
  /** For how long; null for ever. */
  seconds?: number | null;
}

/** A list of things that plugins describe in their own words. */
export interface Items {
  items: { [name: string]: Json }[];
}

/** A key of a provider; it can be written, never read. */
export interface KeyChange {
  key: string;
  /** Ask the provider whether it takes the key. */
  test?: boolean;
}

/** A folder or a tag, and how many sessions have it. */
export interface LabelCount {
  name: string;
  sessions: number;
}

/** How a session is put in order. */
export interface Labels {
  archived: boolean;
  folder: string | null;
  pinned: boolean;
  tags: string[];
}

/** The folders and tags that there are. */
export interface LabelsInUse {
  /** How many sessions are in the archive. */
  archived: number;
  folders: LabelCount[];
  tags: LabelCount[];
}

/** What a run may take. */
export interface Limits {
  cost_budget?: number | null;
  /** Seconds. */
  timeout?: number | null;
  token_budget?: number | null;
}

/** A message of a session. */
export interface Message {
  content: Json;
  index: number;
  metadata?: { [name: string]: Json };
  multipartContent?: { [name: string]: Json }[] | null;
  role: string;
  tool_result?: Json;
}

/** Some messages, in their order. */
export interface MessagePage {
  /** Ask with it for those before; null if these are the first. */
  before: number | null;
  items: Message[];
}

/** A model to test. */
export interface ModelTest {
  /** A declared one, or PROVIDER:MODEL. */
  model: string;
}

/** A key to make. */
export interface NewApiKey {
  name?: string;
  scope?: "read" | "write" | "manage";
  /** For how long; null for ever. */
  seconds?: number | null;
}

/** Calls that may run, or not, from now on. */
export interface NewGrant {
  effect?: "allow" | "deny";
  pattern: string;
  project?: string | null;
  scope: "session" | "project" | "always";
  session_id?: string | null;
}

/** A message for a run that goes on, or for the next. */
export interface NewInput {
  attachments?: { [name: string]: Json }[];
  /** After the current step, after the run, or now. */
  mode?: "steer" | "queue" | "interrupt";
  text?: string;
}

/** A link to make, by which a session can be read. */
export interface NewLink {
  /** For how long; null for ever. */
  seconds?: number | null;
}

/** Somebody to add. */
export interface NewPerson {
  email?: string;
  id: string;
  name?: string;
  role?: "viewer" | "editor" | "owner";
  /** For the operator: whose. */
  tenant?: string | null;
}

/** A session to make. */
export interface NewSession {
  /** The agent; the default one without it. */
  agent_id?: string | null;
  /** What plugins and tools find in it. */
  metadata?: { [name: string]: Json };
  /** Another model than the agent's, as in a change. */
  model?: string | null;
  title?: string | null;
}

/** What a request of a session sends; tokens are estimates. */
export interface NextRequest {
  agent: string;
  context_window: number | null;
  messages: { [name: string]: Json }[];
  model: string;
  tools: { [name: string]: Json }[];
}

/** A run of a session, as the log has it. */
export interface PastRun {
  agent_id: string;
  /** When it began, in seconds since 1970. */
  at: number | null;
  model: string;
  /** Why it ended; null while it runs, or if that is not known. */
  reason: string | null;
  run_id: string;
  /** The number of the event with which it began. */
  seq: number;
}

/** Runs of a session, the latest first. */
export interface PastRuns {
  /** Asks for those before them; null if these are all. */
  before: number | null;
  items: PastRun[];
}

/** Somebody who may use the server. */
export interface Person {
  created: number;
  disabled: boolean;
  email: string;
  id: string;
  name: string;
  role: "viewer" | "editor" | "owner";
  tenant: string;
}

/** What to change of somebody. */
export interface PersonChange {
  disabled?: boolean | null;
  role?: "viewer" | "editor" | "owner" | null;
}

/** One thing that an agent has planned to do. */
export interface PlanItem {
  /** `pending`, `in_progress`, `done` or `dropped`. */
  state: string;
  text: string;
}

/** What went wrong, as RFC 9457 has it. */
export interface ProblemDetails {
  detail?: string | null;
  errors?: { [name: string]: Json }[];
  request_id: string;
  status: number;
  title: string;
  type: string;
}

/** Something to say in a session, and how to answer it. */
export interface RunRequest {
  /** Whether the run ends with this connection. */
  attached?: boolean;
  /** Content parts. */
  attachments?: { [name: string]: Json }[];
  limits?: Limits | null;
  /** A JSON Schema that the answer must fit; `output` of the result has it. */
  output_schema?: { [name: string]: Json } | null;
  /** Settings for this run. */
  overrides?: { [name: string]: Json };
  /** Take the session from another process. */
  take_over?: boolean;
  /** What the user says. Without it, the session continues with the messages that wait. */
  text?: string;
}

/** What a run came to. */
export interface RunResult {
  /** The approvals that it waits for. */
  approvals: string[];
  messages: { [name: string]: Json }[];
  /** The answer as a value, if a schema was given. */
  output?: Json;
  reason: { [name: string]: Json };
  session_id: string;
  text: string;
  usage: { [name: string]: Json };
}

/** A run that has begun. */
export interface RunStarted {
  /** The place among the session's events before this run. */
  after: string;
  /** Where to follow it. */
  events: string;
  session_id: string;
}

/** What was sent for an answer, rebuilt from what is stored. */
export interface SentRequest {
  agent: string;
  /** When it was sent, if the log still says so. */
  at: number | null;
  context_window: number | null;
  messages: { [name: string]: Json }[];
  model: string;
  /** Instructions and tools are those that the agent has now. */
  rebuilt: true;
  tools: { [name: string]: Json }[];
  /** What the provider has counted, if the log says so. */
  usage: { [name: string]: Json } | null;
}

/** What to change of a session; what is not named stays. */
export interface SessionChange {
  /** The agent that answers from now on. */
  agent_id?: string | null;
  /** Whether it is in the archive. */
  archived?: boolean | null;
  /** Its folder; empty for none. */
  folder?: string | null;
  /** The model that answers: a declared one or PROVIDER:MODEL; empty for the agent's own. */
  model?: string | null;
  /** Whether it is pinned. */
  pinned?: boolean | null;
  /** All its tags. */
  tags?: string[] | null;
  title?: string | null;
}

/** What a list shows of a session. */
export interface SessionInfo {
  agent_id: string | null;
  /** Seconds since 1970. */
  created: number;
  /** What plugins add, by plugin. */
  extra?: { [name: string]: Json };
  /** In a list of branches: how many messages are those of its parent. */
  forked_at?: number | null;
  id: string;
  /** In a list: folder, tags, archive and pin. */
  labels?: Labels | null;
  /** In a search: the text that was found. */
  match?: string | null;
  /** How many there are. */
  messages: number;
  /** The session that it was forked from. */
  parent_id: string | null;
  /** Rises with every change of its messages. */
  revision: number;
  title: string;
  updated: number;
}

/** Some sessions, the last changed first. */
export interface SessionPage {
  items: SessionInfo[];
  /** Ask with it for the next ones; null at the end. */
  next_cursor: string | null;
}

/** What is going on in a session. */
export interface SessionState {
  /** The decisions that its run waits for. */
  approvals: Approval[];
  /** The process that may write it now. */
  holder: { [name: string]: Json } | null;
  info: SessionInfo;
  last_event: number;
  /** What its agent has written down to do. */
  plan: PlanItem[];
  queued: Waiting[];
  running: "here" | "elsewhere" | null;
  /** The last answer, if a crash has cut it short and nobody continues it. */
  unfinished: UnfinishedAnswer | null;
}

/** The new value of a setting. */
export interface SettingChange {
  value: Json;
}

/** How a session is shared. */
export interface Share {
  created: number;
  email: string | null;
  expires: number | null;
  id: string;
  kind: "link" | "invitation";
  made_by: string;
  revoked: number | null;
  role: string;
  secret?: string | null;
  session: string;
  tenant: string;
}

/** Whether there was something to stop. */
export interface Stopped {
  stopped: boolean;
}

/** What a run did when. */
export interface Trace {
  agent: string;
  model: string;
  parts: TracePart[];
  run_id: string;
}

/** Something in a run that took a while. */
export interface TracePart {
  begin: number;
  /** How far it is indented: 0 is the run. */
  depth: number;
  end: number | null;
  /** When the first token of an answer came. */
  first: number | null;
  kind: "run" | "step" | "model" | "tool" | "retry" | "fallback" | "handoff" | "wait";
  /** The agent, the number of the step, the model or the tool. */
  name: string;
  /** Tokens, costs, failures. */
  note: string;
}

/** An answer that a crash has cut short. A run with nothing to say answers again. */
export interface UnfinishedAnswer {
  calls: UnfinishedCall[];
  /** The words that were shown; the session's messages do not have them. */
  text: string;
}

/** A call of a tool without a result. */
export interface UnfinishedCall {
  /** As the model wrote them. */
  arguments: Json;
  /** Whether it may have run, in part or completely. */
  begun: boolean;
  call_id: string;
  name: string;
}

/** What models used in a session. */
export interface Usage {
  /** Tokens and cost by model; the last asked comes last. */
  models: { [name: string]: Json }[];
  total: { [name: string]: Json };
}

/** What a model used for an agent, in the sessions that were last used on a day. */
export interface UsageRow {
  agent: string | null;
  cost: number;
  /** As 2026-11-18, in UTC. */
  day: string;
  input_tokens: number;
  model: string;
  output_tokens: number;
  requests: number;
}

/** Usage of many sessions. */
export interface UsageRows {
  /** False if there are more sessions than were looked at. */
  complete: boolean;
  items: UsageRow[];
}

/** What this server is. */
export interface Version {
  api: string;
  name: string;
  version: string;
}

/** A message that waits to be delivered. */
export interface Waiting {
  created: number;
  message: { [name: string]: Json };
  mode: "steer" | "queue" | "interrupt";
  seq: number;
  session_id: string;
}

/** Who makes a request. */
export interface WhoAmI {
  /** null is for no limit. */
  allowed?: { [name: string]: number | null } | null;
  id: string;
  level: "read" | "write" | "manage" | "operate";
  /** Whose sessions there are; null for all. */
  tenant: string | null;
  /** Runs, tokens and cost of today. */
  used?: { [name: string]: number } | null;
}

export class Operations extends Transport {
  /** Say that the process answers. */
  async livez(): Promise<{ [name: string]: string }> {
    return this.json("GET", `/livez`);
  }

  /** Return what the server counts, for Prometheus; it needs the token of the server. */
  async readMetrics(): Promise<Response> {
    return this.request("GET", `/metrics`);
  }

  /** Say whether the server can take requests: it is not stopping, and its database answers. */
  async readyz(): Promise<{ [name: string]: string }> {
    return this.json("GET", `/readyz`);
  }

  /** List the actions of application plugins; where there are several people, for the operator. */
  async listApplicationActions(): Promise<Items> {
    return this.json("GET", `/v1/actions`);
  }

  /** Run an action of an application plugin, and return its result. */
  async runApplicationAction(plugin: string, actionId: string, body: ActionCall, options: { idempotencyKey?: string | null } = {}): Promise<ActionResult> {
    return this.json("POST", `/v1/actions/${this.step(plugin)}/${this.step(actionId)}`, { body, headers: { "idempotency-key": options.idempotencyKey } });
  }

  /** List the declared agents. */
  async listAgents(): Promise<Items> {
    return this.json("GET", `/v1/agents`);
  }

  /** Take an agent's declaration away, unless another one or a setting needs it. */
  async removeAgent(agentId: string): Promise<AgentChanged> {
    return this.json("DELETE", `/v1/agents/${this.step(agentId)}`);
  }

  /** Return what the settings say of an agent, and where each field stands. */
  async readAgent(agentId: string): Promise<AgentDeclaration> {
    return this.json("GET", `/v1/agents/${this.step(agentId)}`);
  }

  /** Make an agent, or change one. It is checked first: one that could not run is refused and not saved. */
  async declareAgent(agentId: string, body: AgentChange): Promise<AgentChanged> {
    return this.json("PUT", `/v1/agents/${this.step(agentId)}`, { body });
  }

  /** List the decisions that runs wait for. */
  async listApprovals(options: { sessionId?: string | null; decided?: boolean } = {}): Promise<Items> {
    return this.json("GET", `/v1/approvals`, { query: { "session_id": options.sessionId, "decided": options.decided } });
  }

  /** Decide, and have the run continue with it. */
  async decide(approvalId: string, body: Decision, options: { sessionId?: string | null } = {}): Promise<Approval> {
    return this.json("POST", `/v1/approvals/${this.step(approvalId)}`, { body, query: { "session_id": options.sessionId } });
  }

  /** List what was done and refused in your tenant, the latest first; as the operator, everywhere. */
  async readAudit(options: { before?: number | null; limit?: number } = {}): Promise<Items> {
    return this.json("GET", `/v1/audit`, { query: { "before": options.before, "limit": options.limit } });
  }

  /** Look for what is wrong with this installation; nothing is changed. */
  async examine(): Promise<Items> {
    return this.json("GET", `/v1/doctor`);
  }

  /** List what was granted: what counts in a session or a project, or everything. */
  async listGrants(options: { sessionId?: string | null; project?: string | null } = {}): Promise<Items> {
    return this.json("GET", `/v1/grants`, { query: { "session_id": options.sessionId, "project": options.project } });
  }

  /** Let calls run from now on, or forbid them. */
  async grant(body: NewGrant): Promise<Grant> {
    return this.json("POST", `/v1/grants`, { body });
  }

  /** Take a grant back. */
  async revoke(grantId: string): Promise<void> {
    return this.nothing("DELETE", `/v1/grants/${this.step(grantId)}`);
  }

  /** List which providers have a key; a key itself is never returned. */
  async listKeys(): Promise<Items> {
    return this.json("GET", `/v1/keys`);
  }

  /** Forget a key. */
  async removeKey(provider: string): Promise<void> {
    return this.nothing("DELETE", `/v1/keys/${this.step(provider)}`);
  }

  /** Store a provider's key, after asking the provider whether it takes it. */
  async setKey(provider: string, body: KeyChange): Promise<{ [name: string]: Json }> {
    return this.json("PUT", `/v1/keys/${this.step(provider)}`, { body });
  }

  /** Return who you are, what you may, and what you used today. */
  async whoAmI(): Promise<WhoAmI> {
    return this.json("GET", `/v1/me`);
  }

  /** List your API keys, without their secrets. */
  async listMyKeys(): Promise<Items> {
    return this.json("GET", `/v1/me/api-keys`);
  }

  /** Make an API key that may do as much as you, or less; its secret is in this answer alone. */
  async createMyKey(body: NewApiKey): Promise<ApiKey> {
    return this.json("POST", `/v1/me/api-keys`, { body });
  }

  /** Make one of your keys worthless. */
  async revokeMyKey(keyId: string): Promise<void> {
    return this.nothing("DELETE", `/v1/me/api-keys/${this.step(keyId)}`);
  }

  /** List the providers for which you have stored a key of your own; the keys are never returned. */
  async listMyProviderKeys(): Promise<Items> {
    return this.json("GET", `/v1/me/provider-keys`);
  }

  /** Forget a key of your own. */
  async removeMyProviderKey(provider: string): Promise<void> {
    return this.nothing("DELETE", `/v1/me/provider-keys/${this.step(provider)}`);
  }

  /** Store a key of your own, encrypted, after asking the provider whether it takes it; your runs use it. */
  async setMyProviderKey(provider: string, body: KeyChange): Promise<void> {
    return this.nothing("PUT", `/v1/me/provider-keys/${this.step(provider)}`, { body });
  }

  /** List the sessions that others have shared with you. */
  async listSharedWithMe(): Promise<Items> {
    return this.json("GET", `/v1/me/shared`);
  }

  /** List the declared models; a session can also have any PROVIDER:MODEL. */
  async listModels(): Promise<Items> {
    return this.json("GET", `/v1/models`);
  }

  /** Ask the provider of a model whether it can be used: its key, its address, its name. */
  async testModel(body: ModelTest): Promise<{ [name: string]: Json }> {
    return this.json("POST", `/v1/models/test`, { body });
  }

  /** List the people of your tenant; as the operator, all. */
  async listPeople(): Promise<Items> {
    return this.json("GET", `/v1/people`);
  }

  /** Add somebody: to your tenant or, as the operator, to any. */
  async addPerson(body: NewPerson): Promise<Person> {
    return this.json("POST", `/v1/people`, { body });
  }

  /** Make an API key for somebody of your tenant. */
  async createKeyFor(body: NewApiKey, options: { personId: string }): Promise<ApiKey> {
    return this.json("POST", `/v1/people/api-keys`, { body, query: { "person_id": options.personId } });
  }

  /** Give somebody another role, or lock them out. */
  async changePerson(personId: string, body: PersonChange): Promise<Person> {
    return this.json("PATCH", `/v1/people/${this.step(personId)}`, { body });
  }

  /** List the plugins of an agent: which are on, and why; and those that could not be loaded. */
  async listPlugins(options: { agentId?: string | null } = {}): Promise<Items> {
    return this.json("GET", `/v1/plugins`, { query: { "agent_id": options.agentId } });
  }

  /** List the providers, and whether each has a key. */
  async listProviders(): Promise<Items> {
    return this.json("GET", `/v1/providers`);
  }

  /** Ask a provider for the models that it offers. */
  async listOfferedModels(provider: string): Promise<Items> {
    return this.json("GET", `/v1/providers/${this.step(provider)}/models`);
  }

  /** List sessions, the last changed first; those in the archive only if they are asked for. */
  async listSessions(options: { query?: string | null; cursor?: string | null; limit?: number; folder?: string | null; tag?: string | null; archived?: boolean; pinned?: boolean | null } = {}): Promise<SessionPage> {
    return this.json("GET", `/v1/sessions`, { query: { "query": options.query, "cursor": options.cursor, "limit": options.limit, "folder": options.folder, "tag": options.tag, "archived": options.archived, "pinned": options.pinned } });
  }

  /** Make a session. */
  async createSession(body?: NewSession | null, options: { idempotencyKey?: string | null } = {}): Promise<SessionInfo> {
    return this.json("POST", `/v1/sessions`, { body, headers: { "idempotency-key": options.idempotencyKey } });
  }

  /** Return several sessions in one archive, a file for each. */
  async exportSessions(options: { id: string[]; redact?: boolean; form?: "zip" | "md" | "html" | "json" }): Promise<Response> {
    return this.request("GET", `/v1/sessions/export`, { query: { "id": options.id, "redact": options.redact, "form": options.form } });
  }

  /** Store the visible conversation of an exported file, which is the body of the request. A file with system messages is refused with all of them, until somebody who has read them allows them. */
  async importSession(data: BodyInit, options: { agentId?: string | null; allowSystem?: boolean } = {}): Promise<SessionInfo> {
    return this.json("POST", `/v1/sessions/import`, { data, query: { "agent_id": options.agentId, "allow_system": options.allowSystem } });
  }

  /** List the folders and tags that sessions have. */
  async listLabels(): Promise<LabelsInUse> {
    return this.json("GET", `/v1/sessions/labels`);
  }

  /** Delete a session with its files; a run of it is cancelled. A guest of another tenant may not. */
  async deleteSession(sessionId: string, options: { ifMatch?: string | null } = {}): Promise<void> {
    return this.nothing("DELETE", `/v1/sessions/${this.step(sessionId)}`, { headers: { "if-match": options.ifMatch } });
  }

  /** Return what is known of a session; its messages have a route of their own. */
  async readSession(sessionId: string): Promise<SessionInfo> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}`);
  }

  /** Give a session another title, agent, model, folder or tags, pin it, or put it into the archive. */
  async changeSession(sessionId: string, body: SessionChange, options: { ifMatch?: string | null } = {}): Promise<SessionInfo> {
    return this.json("PATCH", `/v1/sessions/${this.step(sessionId)}`, { body, headers: { "if-match": options.ifMatch } });
  }

  /** List what can be done in a session. */
  async listSessionActions(sessionId: string): Promise<Items> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}/actions`);
  }

  /** Run an action of the session's agent; what it changes is stored. */
  async runSessionAction(sessionId: string, plugin: string, actionId: string, body: ActionCall, options: { idempotencyKey?: string | null } = {}): Promise<ActionResult> {
    return this.json("POST", `/v1/sessions/${this.step(sessionId)}/actions/${this.step(plugin)}/${this.step(actionId)}`, { body, headers: { "idempotency-key": options.idempotencyKey } });
  }

  /** List the files of a session. */
  async listAssets(sessionId: string): Promise<AssetList> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}/assets`);
  }

  /** Keep a file, which is the body of the request; its type is read from its content. */
  async addAsset(sessionId: string, data: BodyInit, options: { name: string }): Promise<Asset> {
    return this.json("POST", `/v1/sessions/${this.step(sessionId)}/assets`, { data, query: { "name": options.name } });
  }

  /** Take a file from a session. */
  async removeAsset(sessionId: string, assetId: string): Promise<void> {
    return this.nothing("DELETE", `/v1/sessions/${this.step(sessionId)}/assets/${this.step(assetId)}`);
  }

  /** Return a file, or a part of it. */
  async readAsset(sessionId: string, assetId: string, options: { range?: string | null; ifNoneMatch?: string | null } = {}): Promise<Response> {
    return this.request("GET", `/v1/sessions/${this.step(sessionId)}/assets/${this.step(assetId)}`, { headers: { "range": options.range, "if-none-match": options.ifNoneMatch } });
  }

  /** List the session that this one was forked from, the first of all, and all their forks; oldest first. Whoever has a link or an invitation sees those of them that are shared as well. */
  async listBranches(sessionId: string): Promise<SessionPage> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}/branches`);
  }

  /** Stop the run of a session; what it produced is kept. */
  async cancelRun(sessionId: string): Promise<Stopped> {
    return this.json("POST", `/v1/sessions/${this.step(sessionId)}/cancel`);
  }

  /** Return suggestions for the text before the cursor, or the text of an accepted one. */
  async complete(sessionId: string, body: CompletionRequest): Promise<Completions> {
    return this.json("POST", `/v1/sessions/${this.step(sessionId)}/completions`, { body });
  }

  /** List the settings that the plugins of the session's agent read, for a form. */
  async readConfigSchema(sessionId: string): Promise<Items> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}/config-schema`);
  }

  /** Return a session with its files, to keep or to import elsewhere; or its conversation, to read. Whoever has a link gets the conversation to read: the other forms have settings and folders as well. */
  async exportSession(sessionId: string, options: { redact?: boolean; events?: boolean; form?: "zip" | "md" | "html" | "json" } = {}): Promise<Response> {
    return this.request("GET", `/v1/sessions/${this.step(sessionId)}/export`, { query: { "redact": options.redact, "events": options.events, "form": options.form } });
  }

  /** Make a branch that ends with a message. */
  async forkSession(sessionId: string, body: Fork): Promise<SessionInfo> {
    return this.json("POST", `/v1/sessions/${this.step(sessionId)}/fork`, { body });
  }

  /** List the messages that wait to be delivered. */
  async listInputs(sessionId: string): Promise<Items> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}/inputs`);
  }

  /** Say something while a run goes on; it is safe when this is answered. */
  async addInput(sessionId: string, body: NewInput, options: { idempotencyKey?: string | null } = {}): Promise<Waiting> {
    return this.json("POST", `/v1/sessions/${this.step(sessionId)}/inputs`, { body, headers: { "idempotency-key": options.idempotencyKey } });
  }

  /** Take a message back that waits. */
  async withdrawInput(sessionId: string, seq: number): Promise<void> {
    return this.nothing("DELETE", `/v1/sessions/${this.step(sessionId)}/inputs/${this.step(seq)}`);
  }

  /** Change a message that waits. */
  async editInput(sessionId: string, seq: number, body: NewInput): Promise<Waiting> {
    return this.json("PUT", `/v1/sessions/${this.step(sessionId)}/inputs/${this.step(seq)}`, { body });
  }

  /** Have a run answer now what was queued for it. */
  async interruptRun(sessionId: string): Promise<Stopped> {
    return this.json("POST", `/v1/sessions/${this.step(sessionId)}/interrupt`);
  }

  /** Return the folder and the tags of a session, whether it is pinned, and whether it is archived. */
  async readSessionLabels(sessionId: string): Promise<Labels> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}/labels`);
  }

  /** Make a link by which anybody can read a session, until it is revoked; its secret is shown once. */
  async createLink(sessionId: string, body?: NewLink | null): Promise<Share> {
    return this.json("POST", `/v1/sessions/${this.step(sessionId)}/links`, { body });
  }

  /** Return the last messages of a session, or those before an index. */
  async readMessages(sessionId: string, options: { before?: number | null; limit?: number } = {}): Promise<MessagePage> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}/messages`, { query: { "before": options.before, "limit": options.limit } });
  }

  /** Make a branch that ends with another version of a message; a run without a text answers it. */
  async editMessage(sessionId: string, index: number, body: Edit): Promise<SessionInfo> {
    return this.json("POST", `/v1/sessions/${this.step(sessionId)}/messages/${this.step(index)}/edit`, { body });
  }

  /** Return what a branch would keep that begins with another version of a message. */
  async readEditPlan(sessionId: string, index: number): Promise<EditPlan> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}/messages/${this.step(index)}/edit-plan`);
  }

  /** Make a branch that ends before an answer; a run without a text asks the model again. */
  async regenerate(sessionId: string, index: number): Promise<SessionInfo> {
    return this.json("POST", `/v1/sessions/${this.step(sessionId)}/messages/${this.step(index)}/regenerate`);
  }

  /** Return what was sent for an answer: rebuilt from what is stored, secrets left out. */
  async readSentRequest(sessionId: string, index: number): Promise<SentRequest> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}/messages/${this.step(index)}/request`);
  }

  /** Return what the next request would send: messages and tools as plugins leave them, with tokens. */
  async readNextRequest(sessionId: string): Promise<NextRequest> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}/next-request`);
  }

  /** List the runs of a session that its log has, the latest first. */
  async listRuns(sessionId: string, options: { before?: number | null; limit?: number } = {}): Promise<PastRuns> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}/runs`, { query: { "before": options.before, "limit": options.limit } });
  }

  /** Say something in a session and have its agent answer. With `Accept: text/event-stream` the answer is the run's events. Otherwise it comes at once, or with `wait` when the run is over. The run goes on if the connection breaks, unless it is `attached` to it. */
  async startRun(sessionId: string, body: RunRequest, options: { wait?: boolean; idempotencyKey?: string | null } = {}): Promise<RunResult | RunStarted> {
    return this.json("POST", `/v1/sessions/${this.step(sessionId)}/runs`, { body, query: { "wait": options.wait }, headers: { "idempotency-key": options.idempotencyKey } });
  }

  /** Return what a run did when: its steps, its answers and its calls. */
  async readTrace(sessionId: string, runId: string): Promise<Trace> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}/runs/${this.step(runId)}/trace`);
  }

  /** List how a session is shared. */
  async listShares(sessionId: string): Promise<Items> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}/shares`);
  }

  /** Invite somebody to a session, by the address with which they log in. */
  async invite(sessionId: string, body: Invitation): Promise<Share> {
    return this.json("POST", `/v1/sessions/${this.step(sessionId)}/shares`, { body });
  }

  /** Take an invitation or a link back. */
  async revokeShare(sessionId: string, shareId: string): Promise<void> {
    return this.nothing("DELETE", `/v1/sessions/${this.step(sessionId)}/shares/${this.step(shareId)}`);
  }

  /** Return whether a session runs, what waits there, what a crash cut short, and where its events are. */
  async readState(sessionId: string): Promise<SessionState> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}/state`);
  }

  /** Return what models used in a session, and what that cost as far as prices are known. */
  async readUsage(sessionId: string): Promise<Usage> {
    return this.json("GET", `/v1/sessions/${this.step(sessionId)}/usage`);
  }

  /** List the settings that hold, and where each comes from; secrets are left out. */
  async listSettings(): Promise<Items> {
    return this.json("GET", `/v1/settings`);
  }

  /** Return the JSON Schema of the settings. */
  async readSettingsSchema(): Promise<{ [name: string]: Json }> {
    return this.json("GET", `/v1/settings/schema`);
  }

  /** Return the JSON Schema of an agent's declaration; `examples` of a field has what it can name here. */
  async readAgentSchema(): Promise<{ [name: string]: Json }> {
    return this.json("GET", `/v1/settings/schema/agent`);
  }

  /** Change a setting; null removes it. `applies` says whether the server has to be started again. */
  async changeSetting(name: string, body: SettingChange): Promise<{ [name: string]: Json }> {
    return this.json("PUT", `/v1/settings/${this.step(name)}`, { body });
  }

  /** List what could answer: what was found here first, then what can be connected. */
  async readSetup(): Promise<Connections> {
    return this.json("GET", `/v1/setup`);
  }

  /** Have a model answer from now on. It is checked first, and all of it is saved or nothing. */
  async saveSetup(body: Choice): Promise<{ [name: string]: Json }> {
    return this.json("POST", `/v1/setup`, { body });
  }

  /** Ask what was chosen for its models; nothing is saved. */
  async checkSetup(body: Choice): Promise<Items> {
    return this.json("POST", `/v1/setup/check`, { body });
  }

  /** List what plugins want shown: those of the application and, for a session, of its agent. */
  async listElements(options: { sessionId?: string | null } = {}): Promise<Items> {
    return this.json("GET", `/v1/ui`, { query: { "session_id": options.sessionId } });
  }

  /** Add up what models used, by the day on which a session was last used, by agent and by model. */
  async readAllUsage(options: { days?: number } = {}): Promise<UsageRows> {
    return this.json("GET", `/v1/usage`, { query: { "days": options.days } });
  }

  /** Return what this server is. */
  async readVersion(): Promise<Version> {
    return this.json("GET", `/v1/version`);
  }
}
