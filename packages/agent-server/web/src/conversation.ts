// One session on the screen: its stored messages, and what a run adds to them event by event.
//
// Stored messages and events overlap: while a run goes on, its finished steps are messages already. So the page
// reads the messages, leaves out those of the step that goes on, and plays the events from that step's beginning.

import { as, asText, client, inSession, Problem, wordsOf } from "./api";
import { Branches } from "./branches";
import { type Entry, entriesOf, namesOf, type Note, textOf } from "./entries";
import { Feed } from "./feed";
import { LiveRun } from "./live_run";
import { Store } from "./store";
import { oneLine } from "./text";
import type { Approval, Event, InputMode, JsonObject, Message, Part, PlanItem, SessionInfo, SessionState, Unfinished, Usage, Waiting } from "./wire";
import { words } from "./words";

const PAGE = 50;
const OLDER = 100;
const LOOKED_THROUGH = 1000;
const BOUNDARIES = ["step_start", "step_end", "final", "error", "turn_end", "session_changed"];
const WRITES_PLAN = "write_todos";
const ENDS = ["step_end", "final", "error", "turn_end"];

interface MessagePage {
  items: Message[];
  before: number | null;
}

export class Conversation extends Store {
  info: SessionInfo | undefined;
  running = false;
  connected = true;
  approvals: Approval[] = [];
  branches = new Branches();
  queued: Waiting[] = [];
  /** What the agent has written down to do, and how far it has come. */
  plan: PlanItem[] = [];
  notes: Note[] = [];
  /** What a crash of the server has cut short. */
  private unfinished: Note | undefined;
  usage: Usage | undefined;
  status = "";
  before: number | null = null;
  /** The position of the first entry: older ones that are read later come before it, and the others stay. */
  firstPosition = 0;
  loaded = false;
  gone = false;
  /** What a screen reader hears: the whole answer once it is there, never its pieces. */
  announcement = "";

  /** Calls whose details are open, and messages that are being edited: their rows may leave the screen and return. */
  readonly opened = new Set<string>();
  readonly edits = new Map<number, string>();

  private messages: Message[] = [];
  private stored: Entry[] = [];
  private readonly run = new LiveRun();
  private feed: Feed | undefined;
  private closed = false;
  private isReading = false;
  private readonly planned = new Map<string, PlanItem[]>(); // by the call that writes it
  private asked = false; // whether the run that begins next is this page's own
  private changes = 0; // counts events, to notice that something came while we were reading

  constructor(
    readonly id: string,
    private readonly listChanged: () => void,
    /** Whether it can be read alone: by a link, with nothing to change it or to leave it for. */
    readonly readOnly = false,
  ) {
    super();
  }

  get entries(): Entry[] {
    return [...this.stored, ...this.run.entries, ...this.notes, ...(this.unfinished ? [this.unfinished] : [])];
  }

  /** The answers of the model that are stored, the newest first. */
  get answers(): { index: number; text: string }[] {
    const found = this.messages.filter((message) => message.role === "assistant" && message.index !== undefined);
    return found.map((message) => ({ index: message.index ?? 0, text: textOf(message) || namesOf(message) })).reverse();
  }

  close(): void {
    this.closed = true;
    this.feed?.close();
  }

  /** Read everything, and follow the events from there. */
  async load(): Promise<void> {
    try {
      for (let attempt = 0; attempt < 5; attempt += 1) if (await this.readAll()) break;
    } catch (error) {
      this.failed(error);
    }
    this.loaded = true;
    this.changed();
  }

  private failed(error: unknown): void {
    if (error instanceof Problem && error.status === 404) this.gone = true;
    else if (error instanceof Problem && error.status === 0) {
      this.connected = false;
      window.setTimeout(() => !this.closed && void this.load(), 2000);
    } else this.note("error", wordsOf(error));
  }

  /** Read state, messages and the step that goes on; false if a step began or ended meanwhile. */
  private async readAll(): Promise<boolean> {
    const state = await as<SessionState>(client.readState(this.id));
    const from = Math.max(0, state.last_event - LOOKED_THROUGH);
    const [events, page] = await Promise.all([this.logged(from), as<MessagePage>(client.readMessages(this.id, { limit: PAGE }))]);
    const seen = events.at(-1)?.seq ?? from;
    const since = [...events.filter(({ seq }) => (seq ?? 0) > state.last_event), ...(await this.logged(seen))];
    if (since.some((event) => BOUNDARIES.includes(event.type))) return false;
    if (this.closed) return true;
    this.feed?.close();
    this.run.clear();
    for (const event of events) this.run.remember(event);
    const lost = state.unfinished?.calls ?? [];
    for (const { call_id } of lost) this.run.lose(call_id);
    const step = lost.length ? [] : openStep(events); // calls that nobody runs any more are shown as messages
    const calls = new Set(step.map((event) => event["call_id"]).filter((id) => typeof id === "string"));
    this.take({ ...page, items: page.items.filter((message) => !isOfCalls(message, calls)) });
    // A run that has logged its end is over, though the server may not have let go of the session yet.
    const newest = events.findLast(({ type }) => ["run_start", "final", "error"].includes(type));
    const isOver = newest !== undefined && newest.type !== "run_start";
    this.takeState({ ...state, running: isOver ? null : state.running });
    this.connected = true;
    const after = step[0]?.seq === undefined ? seen : step[0].seq - 1;
    this.feed = new Feed(
      inSession(this.id, "events"),
      String(after),
      {
        event: (event) => this.hear(event),
        lost: () => void this.load(),
        deleted: () => this.deleted(),
        connected: (is) => this.setConnected(is),
      },
      () => this.running,
    );
    void this.readUsage();
    if (!this.readOnly) void this.readBranches();
    return true;
  }

  private logged(after: number): Promise<Event[]> {
    return client.loggedEvents(this.id, after, LOOKED_THROUGH);
  }

  private take(page: MessagePage): void {
    const first = page.items[0]?.index ?? 0;
    const last = this.messages.at(-1)?.index ?? -1;
    const older = last + 1 >= first ? this.messages.filter((message) => (message.index ?? 0) < first) : [];
    this.messages = [...older, ...page.items];
    if (!older.length) this.before = page.before;
    this.stored = entriesOf(this.messages, this.run.known);
  }

  private takeState(state: SessionState): void {
    this.info = state.info;
    this.running = state.running !== null;
    this.approvals = state.approvals.filter((approval) => approval.decision === null);
    this.queued = state.queued;
    this.plan = state.plan;
    this.unfinished = state.unfinished === null ? undefined : noteOf(state.unfinished);
  }

  /** Take what a crash has cut short off the screen: it is asked for again, or something else is said. */
  private leaveUnfinished(): void {
    if (this.unfinished === undefined) return;
    this.unfinished = undefined;
    this.run.clear();
  }

  /** Read the messages of a run that is over; what is on the screen stays where it is. */
  private async settle(): Promise<void> {
    const changes = this.changes;
    try {
      const [state, page] = await Promise.all([
        as<SessionState>(client.readState(this.id)),
        as<MessagePage>(client.readMessages(this.id, { limit: PAGE })),
      ]);
      if (this.closed || (changes !== this.changes && this.running)) return;
      const isOver = state.running === null || !this.running;
      this.takeState({ ...state, running: isOver ? null : state.running });
      if (isOver) {
        this.run.clear();
        this.take(page);
      }
      void this.readUsage();
    } catch (error) {
      this.failed(error);
    }
    this.changed();
  }

  async readOlder(): Promise<void> {
    if (this.before === null || this.isReading) return;
    this.isReading = true;
    let page: MessagePage;
    try {
      page = await as<MessagePage>(client.readMessages(this.id, { limit: OLDER, before: this.before }));
    } finally {
      this.isReading = false;
    }
    this.messages = [...page.items, ...this.messages];
    this.before = page.before;
    const shown = this.stored.length;
    this.stored = entriesOf(this.messages, this.run.known);
    this.firstPosition -= this.stored.length - shown;
    this.changed();
  }

  private async readBranches(): Promise<void> {
    try {
      this.branches = new Branches((await client.listBranches(this.id)).items);
      this.changed();
    } catch {
      // The conversation is whole without its branches.
    }
  }

  private async readUsage(): Promise<void> {
    try {
      this.usage = await as<Usage>(client.readUsage(this.id));
      this.changed();
    } catch {
      // It is shown in a corner: nobody needs to hear that it is missing.
    }
  }

  private setConnected(is: boolean): void {
    if (this.connected === is) return;
    this.connected = is;
    if (is && this.running) void this.lookForCrash();
    this.changed();
  }

  /** A server that was killed tells nobody that a run is over: ask it when it is there again. */
  private async lookForCrash(): Promise<void> {
    try {
      const { unfinished } = await as<SessionState>(client.readState(this.id));
      if (unfinished !== null && this.running && !this.closed) await this.load();
    } catch {
      // The connection is lost again, and the next one asks again.
    }
  }

  private deleted(): void {
    this.gone = true;
    this.listChanged();
    this.changed();
  }

  private hear(event: Event): void {
    this.changes += 1;
    this.run.remember(event);
    switch (event.type) {
      case "run_start":
        this.begin(event);
        break;
      case "status":
        this.status = String(event["text"] ?? "");
        break;
      case "final":
      case "error":
        this.end(event);
        return;
      case "warning":
        this.note("warning", String(event["message"] ?? ""));
        break;
      case "session_renamed":
        if (this.info) this.info = { ...this.info, title: String(event["title"]) };
        this.listChanged();
        break;
      case "decision_made":
        this.approvals = this.approvals.filter((approval) => approval.id !== event["approval_id"]);
        break;
      case "session_changed":
      case "agent_switched":
        if (!this.running) void this.settle();
        break;
      default:
        this.hearInput(event);
        this.hearPlan(event);
        this.run.add(event);
        if (event.type === "text") this.status = "";
    }
    this.changedSoon();
  }

  private begin(event: Event): void {
    const own = this.asked || event["resumed"] === true || this.running;
    this.asked = false;
    this.running = true;
    this.notes = [];
    if (!own) void this.load(); // another tab or program has said something: it is in the messages
  }

  private end(event: Event): void {
    this.running = false;
    this.status = "";
    if (event.type === "error") {
      const error = event["error"] as { message?: string } | undefined;
      this.note("error", error?.message ?? words.runFailed, true);
    } else {
      const code = (event["reason"] as { code?: string } | undefined)?.code ?? "natural_end";
      if (code === "cancelled") this.note("info", words.stopped);
      else if (code !== "natural_end" && code !== "suspended") this.note("warning", words.endedEarly(code.replaceAll("_", " ")));
      this.announcement = String(event["text"] ?? "");
    }
    this.changed();
    this.listChanged();
    void this.settle();
  }

  /** Keep the plan as the agent writes it down. */
  private hearPlan(event: Event): void {
    if (event["name"] !== WRITES_PLAN) return;
    const call = String(event["call_id"]);
    const items = (event["arguments"] as { items?: unknown } | undefined)?.items;
    if (event.type === "tool_call_start" && Array.isArray(items)) this.planned.set(call, items as PlanItem[]);
    else if (event.type === "tool_call_result" && event["is_error"] !== true) this.plan = this.planned.get(call) ?? this.plan;
  }

  private hearInput(event: Event): void {
    const number = event["input"];
    if (event.type === "input_queued" || event.type === "input_edited") {
      const waiting = { seq: number, mode: event["mode"], message: event["message"] } as Waiting;
      this.queued = [...this.queued.filter((one) => one.seq !== number), waiting].sort((a, b) => a.seq - b.seq);
    } else if (event.type === "input_withdrawn") {
      this.queued = this.queued.filter((one) => one.seq !== number);
    } else if (event.type === "input_delivered") {
      const delivered = event["inputs"] as number[];
      for (const one of this.queued) if (delivered.includes(one.seq)) this.run.say(one.message);
      this.queued = this.queued.filter((one) => !delivered.includes(one.seq));
    }
  }

  note(level: Note["level"], text: string, retry = false): void {
    this.notes = [...this.notes, { kind: "note", level, text, retry }];
    this.changed();
  }

  // What a person does

  /** Put something into the composer, behind what is written there. */
  insert: (text: string) => void = () => undefined;
  /** Put a text into the composer, in place of what is written there. */
  setInput: (text: string) => void = () => undefined;

  /** Say something: to an agent that waits, or to one that works. */
  async say(text: string, attachments: JsonObject[], shown: Part[], mode: InputMode): Promise<void> {
    if (this.running) {
      await client.addInput(this.id, { text, attachments, mode });
      return;
    }
    this.notes = [];
    this.leaveUnfinished();
    this.run.say({ role: "user", content: text, multipartContent: shown });
    await this.start({ text, attachments });
  }

  /** Have the agent answer what stands there. */
  async start(request: JsonObject = {}): Promise<void> {
    this.asked = true;
    this.running = true;
    this.notes = [];
    this.leaveUnfinished();
    this.changed();
    try {
      await client.startRun(this.id, request);
    } catch (error) {
      this.asked = false;
      this.running = false;
      this.run.clear();
      this.note("error", wordsOf(error));
      throw error;
    }
  }

  async stop(): Promise<void> {
    await this.attempt(client.cancelRun(this.id));
  }

  /** Decide what the run waits for; it goes on by itself. */
  async decide(approval: Approval, decision: JsonObject): Promise<void> {
    this.asked = true;
    await this.attempt(
      client.decide(approval.id, decision, { sessionId: this.id }),
    );
    this.approvals = this.approvals.filter((one) => one.id !== approval.id);
    this.changed();
  }

  /** Change the text of a waiting message, or when it is read; its attachments stay. */
  async editWaiting({ seq, message }: Waiting, text: string, mode: InputMode): Promise<void> {
    const parts = (message.multipartContent ?? []) as unknown as JsonObject[];
    const attachments = message.content ? parts.slice(1) : parts; // the first part is the text, if there is one
    await this.attempt(client.editInput(this.id, seq, { text, mode, attachments }));
  }

  async withdraw(seq: number): Promise<void> {
    await this.attempt(client.withdrawInput(this.id, seq));
  }

  async change(change: JsonObject): Promise<void> {
    await this.attempt(client.changeSession(this.id, change));
    await this.settle();
    this.listChanged();
  }

  /** Do something, and say on the screen if it fails. */
  async attempt(work: Promise<unknown>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.note("error", wordsOf(error));
    }
  }
}

/** Return the events of the step that goes on, from its beginning; none if there is no such step. */
function openStep(events: Event[]): Event[] {
  const begun = events.findLastIndex((event) => event.type === "step_start");
  const step = begun < 0 ? [] : events.slice(begun);
  return step.some((event) => ENDS.includes(event.type)) ? [] : step;
}

function noteOf({ calls }: Unfinished): Note {
  const lines = calls.map((call) => `${oneLine(`${call.name} ${asText(call.arguments)}`, 80)}: ${call.begun ? words.mayHaveRun : words.didNotRun}`);
  return { kind: "note", level: "warning", text: lines.length ? [words.cutCalls, ...lines].join("\n") : words.cutAnswer, retry: true };
}

function isOfCalls(message: Message, calls: ReadonlySet<unknown>): boolean {
  const asked = message.metadata?.tool_calls ?? [];
  return calls.has(message.metadata?.tool_call_id) || asked.some((call) => calls.has(call.id));
}
