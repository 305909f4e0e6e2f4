// A form from descriptions of inputs: a widget for each type, and values of the types that were asked for.

import { client } from "./api";
import { useLoaded } from "./loaded";
import { oneLine, visible } from "./text";
import { words } from "./words";
import type { Input, Json, JsonObject } from "./wire";

export function Field({ input }: { input: Input }) {
  return (
    <label class="field">
      <span>{oneLine(input.label ?? input.name)}</span>
      <Widget input={input} />
      {input.description && <small>{visible(input.description)}</small>}
    </label>
  );
}

function Widget({ input }: { input: Input }) {
  const options = input.enum ?? input.options ?? [];
  const isBoolean = input.widget === "checkbox" || (input.type === "boolean" && !options.length);
  const common = { name: input.name, required: input.required && !isBoolean, placeholder: input.placeholder };
  const value = input.default === undefined || input.default === null ? "" : typeof input.default === "string" ? input.default : JSON.stringify(input.default);
  const isLong = input.widget === "textarea" || input.type === "object" || input.type === "array";
  if (input.widget === "session") return <SessionChoice {...common} />;
  if (input.widget === "file") return <input type="file" name={input.name} required={input.required} />;
  if (isBoolean) return <input type="checkbox" name={input.name} defaultChecked={input.default === true} />;
  if (options.length) {
    return (
      <select {...common} value={value}>
        {!input.required && <option value="" />}
        {options.map((one) => <option key={String(one)} value={typeof one === "string" ? one : JSON.stringify(one)}>{String(one)}</option>)}
      </select>
    );
  }
  if (isLong) return <textarea {...common} rows={4} defaultValue={value} />;
  return <input {...common} {...kindOf(input)} defaultValue={value} />;
}

function SessionChoice({ name, required }: { name: string; required: boolean | undefined }) {
  const { data } = useLoaded(() => client.listSessions({ limit: 50 }));
  return (
    <select name={name} required={required}>
      {!required && <option value="" />}
      {data?.items.map((one) => <option key={one.id} value={one.id}>{oneLine(one.title, 60) || words.newSession}</option>)}
    </select>
  );
}

function kindOf(input: Input) {
  if (input.widget === "password") return { type: "password" } as const;
  if (input.type === "integer") return { type: "number", step: "1" } as const;
  if (input.type === "number" || input.widget === "number") return { type: "number", step: "any" } as const;
  return { type: "text" } as const;
}

/** Return what was filled in, each value of the type that is wanted; what is empty is not given. */
export async function valuesOf(form: HTMLFormElement, inputs: Input[], session: string | undefined): Promise<JsonObject> {
  const data = new FormData(form);
  const values: JsonObject = {};
  for (const input of inputs) {
    const given = data.get(input.name);
    const chosen = (input.enum ?? input.options ?? []).find((one) => typeof one !== "string" && JSON.stringify(one) === given);
    if (given instanceof File) {
      if (given.size > 0) values[input.name] = await kept(given, session);
    } else if ((input.type === "boolean" || input.widget === "checkbox") && chosen === undefined) values[input.name] = given !== null;
    else if (chosen !== undefined) values[input.name] = chosen;
    else if (typeof given === "string" && given !== "") values[input.name] = typed(given, input.type);
  }
  return values;
}

/** Keep a file in the session, and return its id there; without a session, its text. */
async function kept(file: File, session: string | undefined): Promise<string> {
  if (session === undefined) return file.text();
  return (await client.addAsset(session, file, { name: file.name })).id;
}

function typed(text: string, type = "string"): Json {
  if (type === "string" || type === "any") return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text; // the server says what is wrong with it
  }
}
