// A form from descriptions of inputs: a widget for each type, and values of the types that were asked for.

import { oneLine, visible } from "./text";
import type { Input, Json, JsonObject } from "./wire";

export function Field({ input }: { input: Input }) {
  const options = input.enum ?? input.options ?? [];
  const common = { name: input.name, required: input.required && input.type !== "boolean", placeholder: input.placeholder };
  const value = input.default === undefined || input.default === null ? "" : typeof input.default === "string" ? input.default : JSON.stringify(input.default);
  const isLong = input.widget === "textarea" || input.type === "object" || input.type === "array";
  return (
    <label class="field">
      <span>{oneLine(input.label ?? input.name)}</span>
      {options.length ? (
        <select {...common} value={value}>
          {!input.required && <option value="" />}
          {options.map((one) => <option key={String(one)} value={typeof one === "string" ? one : JSON.stringify(one)}>{String(one)}</option>)}
        </select>
      ) : input.type === "boolean" ? (
        <input type="checkbox" name={input.name} defaultChecked={input.default === true} />
      ) : isLong ? (
        <textarea {...common} rows={4} defaultValue={value} />
      ) : (
        <input {...common} {...kindOf(input)} defaultValue={value} />
      )}
      {input.description && <small>{visible(input.description)}</small>}
    </label>
  );
}

function kindOf(input: Input) {
  if (input.widget === "password") return { type: "password" } as const;
  if (input.type === "integer") return { type: "number", step: "1" } as const;
  if (input.type === "number") return { type: "number", step: "any" } as const;
  return { type: "text" } as const;
}

/** Return what was filled in, each value of the type that its action wants; what is empty is not given. */
export function valuesOf(form: HTMLFormElement, inputs: Input[]): JsonObject {
  const data = new FormData(form);
  const values: JsonObject = {};
  for (const input of inputs) {
    const text = data.get(input.name);
    const chosen = (input.enum ?? input.options ?? []).find((one) => typeof one !== "string" && JSON.stringify(one) === text);
    if (input.type === "boolean" && chosen === undefined) values[input.name] = text !== null;
    else if (chosen !== undefined) values[input.name] = chosen;
    else if (typeof text === "string" && text !== "") values[input.name] = typed(text, input.type);
  }
  return values;
}

function typed(text: string, type = "string"): Json {
  if (type === "string" || type === "any") return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text; // the server says what is wrong with it
  }
}
