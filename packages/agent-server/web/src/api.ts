// Requests to the server that this page comes from.

import type { Json } from "./wire";

/** An answer that says what is wrong, in words for people. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    message: string,
  ) {
    super(message);
  }
}

async function request(method: string, path: string, body?: BodyInit, type?: string): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (method !== "GET") headers["x-keelwork"] = "1"; // no page of another site can send it
  if (type !== undefined) headers["content-type"] = type;
  let answer: Response;
  try {
    answer = await fetch(path, { method, headers, body: body ?? null });
  } catch {
    throw new Problem(0, "unreachable", "The server cannot be reached. Is `agent serve` running?");
  }
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

async function problemOf(answer: Response): Promise<Problem> {
  try {
    const told = (await answer.json()) as { title?: string; detail?: string; type?: string };
    const words = [told.title, told.detail].filter(Boolean).join(": ");
    return new Problem(answer.status, told.type ?? "", words || `The server answered ${answer.status}.`);
  } catch {
    return new Problem(answer.status, "", `The server answered ${answer.status}.`);
  }
}

export async function read<T>(path: string): Promise<T> {
  return (await (await request("GET", path)).json()) as T;
}

export async function list<T>(path: string): Promise<T[]> {
  return (await read<{ items: T[] }>(path)).items;
}

export async function send<T>(method: "POST" | "PUT" | "PATCH", path: string, body: unknown = {}): Promise<T> {
  return (await (await request(method, path, JSON.stringify(body), "application/json")).json()) as T;
}

export async function remove(path: string): Promise<void> {
  await request("DELETE", path);
}

export async function upload<T>(path: string, file: File): Promise<T> {
  const type = file.type || "application/octet-stream";
  return (await (await request("POST", path, file, type)).json()) as T;
}

/** Return the address of something in a session. */
export function inSession(id: string, ...steps: (string | number)[]): string {
  return ["/v1/sessions", id, ...steps].map((step, at) => (at ? encodeURIComponent(step) : step)).join("/");
}

export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function asText(value: Json | undefined): string {
  return typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value, null, 2);
}
