// What all requests have in common: who asks, what goes wrong, and streams that go on where they broke off.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** An answer that says what is wrong, in words for people; `status` is 0 if there was no answer at all. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    /** A word that programs can rely on, such as `urn:keelwork:session-not-found`. */
    readonly type: string,
    message: string,
    readonly requestId = "",
    /** What is wrong with single parts, where the server says so. */
    readonly errors: { field?: string; message: string }[] = [],
  ) {
    super(message);
  }
}

/** An event of a session; what else `data` has depends on its type. */
export interface SessionEvent {
  /** By which a stream goes on behind it. */
  id: string;
  type: string;
  data: { type: string; seq?: number; [name: string]: unknown };
}

export interface ClientOptions {
  /** Where the server is; by default where the page comes from. */
  url?: string;
  /** The token or API key; pages of the server have a cookie instead. */
  token?: string;
  fetch?: typeof fetch;
}

export interface Parts {
  body?: unknown;
  data?: BodyInit;
  query?: { [name: string]: string | number | boolean | readonly string[] | null | undefined };
  headers?: { [name: string]: string | null | undefined };
  signal?: AbortSignal;
}

export interface StreamOptions {
  signal?: AbortSignal;
  /** For how many milliseconds to try to connect again. */
  patience?: number;
}

const AGAIN_MS = 1_000;
const PATIENCE_MS = 60_000;
const ENDS = ["final", "error"];

export class Transport {
  private readonly url: string;
  private readonly token: string | undefined;
  private readonly fetch: typeof fetch;

  constructor(options: ClientOptions = {}) {
    this.url = (options.url ?? "").replace(/\/$/, "");
    this.token = options.token;
    this.fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /** Return a part of an address, whatever characters it has. */
  protected step(value: string | number): string {
    return encodeURIComponent(value);
  }

  /** Make a request; an answer that is not a success is thrown as a `Problem`. */
  async request(method: string, path: string, parts: Parts = {}): Promise<Response> {
    const headers: Record<string, string> = { accept: "application/json" };
    if (this.token !== undefined) headers["authorization"] = `Bearer ${this.token}`;
    else if (method !== "GET") headers["x-keelwork"] = "1"; // no page of another site can send it
    let body = parts.data ?? null;
    if (parts.body !== undefined) {
      headers["content-type"] = "application/json";
      body = JSON.stringify(parts.body);
    } else if (body !== null) {
      headers["content-type"] = (body instanceof Blob && body.type) || "application/octet-stream";
    }
    for (const [name, value] of Object.entries(parts.headers ?? {})) if (value != null) headers[name] = value;
    const query = new URLSearchParams();
    for (const [name, given] of Object.entries(parts.query ?? {})) {
      for (const value of Array.isArray(given) ? given : [given]) if (value != null) query.append(name, String(value));
    }
    const address = `${this.url}${path}${query.size ? `?${query}` : ""}`;
    let answer: Response;
    try {
      answer = await this.fetch(address, { method, headers, body, signal: parts.signal ?? null });
    } catch (error) {
      if (parts.signal?.aborted) throw error;
      throw new Problem(0, "unreachable", "The server cannot be reached. Is `agent serve` running?");
    }
    if (!answer.ok) throw await problemOf(answer);
    return answer;
  }

  protected async json<T>(method: string, path: string, parts?: Parts): Promise<T> {
    return (await (await this.request(method, path, parts)).json()) as T;
  }

  protected async nothing(method: string, path: string, parts?: Parts): Promise<void> {
    await this.request(method, path, parts);
  }

  /** Say something in a session and yield what happens; the last event is `final` or `error`. */
  run(sessionId: string, body: object, options: StreamOptions = {}): AsyncGenerator<SessionEvent, void> {
    const path = `/v1/sessions/${this.step(sessionId)}`;
    const headers = { "idempotency-key": crypto.randomUUID() }; // so that it is begun once, however often it is asked for
    const first = (): Promise<Response> => this.open("POST", `${path}/runs`, options, { body, headers });
    return this.stream(first, `${path}/events`, "", true, options);
  }

  /** Yield the events of a session behind an id, then those to come; without a session, those of all. */
  events(sessionId?: string, after = "", options: StreamOptions = {}): AsyncGenerator<SessionEvent, void> {
    const path = sessionId === undefined ? "/v1/events" : `/v1/sessions/${this.step(sessionId)}/events`;
    const first = (): Promise<Response> => this.open("GET", path, options, { query: { after: after || null } });
    return this.stream(first, path, after, false, options);
  }

  /** Return some events of a session's log behind a number, without waiting for more. */
  async loggedEvents(sessionId: string, after = 0, limit = 100): Promise<SessionEvent["data"][]> {
    const path = `/v1/sessions/${this.step(sessionId)}/events`;
    return (await this.json<{ items: SessionEvent["data"][] }>("GET", path, { query: { after, limit } })).items;
  }

  private open(method: string, path: string, options: StreamOptions, parts: Parts): Promise<Response> {
    const headers = { ...parts.headers, accept: "text/event-stream" };
    return this.request(method, path, { ...parts, headers, ...(options.signal ? { signal: options.signal } : {}) });
  }

  private async *stream(
    first: () => Promise<Response>,
    path: string,
    after: string,
    oneRun: boolean,
    options: StreamOptions,
  ): AsyncGenerator<SessionEvent, void> {
    let heard = Date.now();
    for (let last = after; ; ) {
      try {
        const again = (): Promise<Response> => this.open("GET", path, options, { headers: { "last-event-id": last } });
        const answer = await (last === after ? first() : again());
        for await (const fields of framesOf(answer)) {
          heard = Date.now();
          if (fields["event"] === "deleted") return;
          if (fields["data"] === undefined || fields["event"] !== undefined) continue;
          const data = JSON.parse(fields["data"]) as SessionEvent["data"];
          last = fields["id"] ?? last;
          yield { id: last, type: data.type, data };
          if (oneRun && ENDS.includes(data.type)) return;
        }
      } catch (error) {
        const lasting = error instanceof Problem && error.status !== 0 && error.status !== 503;
        if (lasting || options.signal?.aborted) throw error;
        if (Date.now() - heard > (options.patience ?? PATIENCE_MS)) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

/** Yield the fields of each event of an answer, however its pieces are cut. */
export async function* framesOf(answer: Response): AsyncGenerator<{ [name: string]: string }, void> {
  if (answer.body === null) return;
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).replaceAll("\r\n", "\n").split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const fields: { [name: string]: string } = {};
        for (const line of block.split("\n")) {
          const colon = line.indexOf(":");
          const name = colon < 0 ? line : line.slice(0, colon);
          const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
          fields[name] = name === "data" && fields["data"] !== undefined ? `${fields["data"]}\n${text}` : text;
        }
        yield fields;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

async function problemOf(answer: Response): Promise<Problem> {
  try {
    const told = (await answer.json()) as {
      title?: string; detail?: string; type?: string; request_id?: string; errors?: Problem["errors"];
    };
    const words = [told.title, told.detail].filter(Boolean).join(": ");
    const said = words || `The server answered ${answer.status}.`;
    return new Problem(answer.status, told.type ?? "", said, told.request_id ?? "", told.errors ?? []);
  } catch {
    return new Problem(answer.status, "", `The server answered ${answer.status}.`);
  }
}
