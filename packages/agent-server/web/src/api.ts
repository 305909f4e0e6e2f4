// Requests to the server that this page comes from, by the client that is made from its description.

import { Client } from "../../../../clients/typescript/src";
import type { Json } from "./wire";

export { Problem, type PastRun, type PastRuns, type TracePart } from "../../../../clients/typescript/src";

export const client = new Client();

/** Have this browser forget who it is, and show what a stranger sees. */
export async function logOut(): Promise<void> {
  await fetch("/logout", { method: "POST", headers: { "x-keelwork": "1" } });
  location.assign("/");
}

/** Return an answer as the page reads it: the description leaves open what plugins and events may have. */
export async function as<T>(answer: Promise<unknown>): Promise<T> {
  return (await answer) as T;
}

export async function list<T>(answer: Promise<{ items: unknown[] }>): Promise<T[]> {
  return (await answer).items as T[];
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
