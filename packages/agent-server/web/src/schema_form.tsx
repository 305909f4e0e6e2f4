// A form from a JSON Schema: a field for each property, which is set or left to its default.

import { useId, useState } from "preact/hooks";
import { asText } from "./api";
import { visible } from "./text";
import { words } from "./words";
import type { Json, JsonObject } from "./wire";

export interface Schema {
  type?: string | string[];
  enum?: Json[];
  description?: string;
  default?: Json;
  minimum?: number;
  maximum?: number;
  items?: Schema;
  anyOf?: Schema[];
  /** What a value can be; others may be possible. */
  examples?: string[];
  properties?: { [name: string]: Schema };
}

interface FormProps {
  schema: Schema;
  values: JsonObject;
  /** Those of the values that can be taken back. */
  own: JsonObject;
  /** Where each value stands that is set already. */
  origins: { [name: string]: string };
  /** What is wrong with single fields. */
  errors: { [name: string]: string };
  change: (name: string, value: Json | undefined) => void;
}

export function SchemaFields({ schema, values, own, origins, errors, change }: FormProps) {
  return (
    <>
      {Object.entries(schema.properties ?? {}).map(([name, rules]) => (
        <SchemaField key={name} name={name} rules={rules} value={values[name]} isOwn={name in own} origin={origins[name]} error={errors[name]} change={(value) => change(name, value)} />
      ))}
    </>
  );
}

interface FieldProps {
  name: string;
  rules: Schema;
  value: Json | undefined;
  isOwn: boolean;
  origin: string | undefined;
  error: string | undefined;
  change: (value: Json | undefined) => void;
}

function SchemaField({ name, rules, value, isOwn, origin, error, change }: FieldProps) {
  const id = useId();
  const about = { id, name, "aria-describedby": `${id}-about`, "aria-invalid": error !== undefined };
  return (
    <div class="setting schema-field">
      <label for={id}><code>{name}</code> {isOwn && <button type="button" class="reset" aria-label={words.resetOf(name)} onClick={() => change(undefined)}>{words.resetSetting}</button>}</label>
      <SchemaWidget about={about} rules={rules} value={value} change={change} />
      <p id={`${id}-about`} class="quiet">{[rules.description, origin].filter(Boolean).map((one) => visible(one ?? "")).join(" · ")}</p>
      {error !== undefined && <p class="failure" role="alert">{visible(error)}</p>}
    </div>
  );
}

interface WidgetProps {
  about: { id: string; name: string; "aria-describedby": string; "aria-invalid": boolean };
  rules: Schema;
  value: Json | undefined;
  change: (value: Json | undefined) => void;
}

function SchemaWidget(props: WidgetProps) {
  const { about, rules, value, change } = props;
  const standard = rules.default === undefined || rules.default === null ? "" : asText(rules.default);
  const choices = rules.type === "boolean" ? [true, false] : (rules.enum ?? rules.anyOf?.find((one) => one.enum)?.enum);
  if (choices && (value === undefined || choices.includes(value))) {
    return (
      <select {...about} value={value === undefined ? "" : asText(value)} onChange={(event) => change(choices.find((one) => asText(one) === event.currentTarget.value))}>
        <option value="">{words.notSet(standard)}</option>
        {choices.map((one) => <option key={asText(one)} value={asText(one)}>{asText(one)}</option>)}
      </select>
    );
  }
  if (rules.type === "integer" || rules.type === "number") {
    const read = (text: string): Json | undefined => (text === "" ? undefined : Number(text));
    return <input {...about} type="number" min={rules.minimum} max={rules.maximum} step={rules.type === "integer" ? 1 : "any"} placeholder={standard} value={value === undefined ? "" : asText(value)} onInput={(event) => change(read(event.currentTarget.value))} />;
  }
  if (rules.type === "string") return <TextField {...props} />;
  if (isListOfNames(rules, value)) {
    return (
      <>
        {value === undefined && <p class="quiet">{words.notSet("")}</p>}
        <NameList {...props} value={(value ?? []) as string[]} />
      </>
    );
  }
  return <JsonField {...props} />;
}

/** One line where names are known, else a text of any length. */
function TextField({ about, rules, value, change }: WidgetProps) {
  const read = (text: string): Json | undefined => (text === "" ? undefined : text);
  const text = value === undefined ? "" : asText(value);
  if (!rules.examples) return <textarea {...about} class="growing" rows={2} dir="auto" value={text} onInput={(event) => change(read(event.currentTarget.value))} />;
  return (
    <>
      <input {...about} list={`${about.id}-list`} autocomplete="off" value={text} onInput={(event) => change(read(event.currentTarget.value))} />
      <datalist id={`${about.id}-list`}>{rules.examples.map((one) => <option key={one} value={one} />)}</datalist>
    </>
  );
}

function isListOfNames(rules: Schema, value: Json | undefined): boolean {
  const isList = [rules.type].flat().includes("array");
  const takesNames = [rules.items, ...(rules.items?.anyOf ?? [])].some((one) => one?.type === "string");
  return isList && takesNames && (value === undefined || (Array.isArray(value) && value.every((one) => typeof one === "string")));
}

/** Names in the order in which they were chosen: those that are known to tick, others to type. */
function NameList({ about, rules, value, change }: WidgetProps & { value: string[] }) {
  const [other, setOther] = useState("");
  const known = [...new Set([...(rules.examples ?? []), ...value])];
  const add = (): void => {
    if (other.trim() && !value.includes(other.trim())) change([...value, other.trim()]);
    setOther("");
  };
  return (
    <div class="names" role="group" aria-label={about.name}>
      {known.map((one) => (
        <label key={one}>
          <input type="checkbox" checked={value.includes(one)} onChange={(event) => change(event.currentTarget.checked ? [...value, one] : value.filter((name) => name !== one))} /> {visible(one)}
        </label>
      ))}
      <span class="inline">
        <input
          {...about}
          value={other}
          placeholder={words.another}
          onInput={(event) => setOther(event.currentTarget.value)}
          onBlur={add}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault(); // it adds a name, and does not send the form
            add();
          }}
        />
      </span>
    </div>
  );
}

/** What no other field fits, as it is written in JSON. */
function JsonField({ about, value, change }: WidgetProps) {
  const [text, setText] = useState(value === undefined ? "" : asText(value));
  const [wrong, setWrong] = useState(false);
  const take = (written: string): void => {
    setText(written);
    try {
      change(written.trim() === "" ? undefined : (JSON.parse(written) as Json));
      setWrong(false);
    } catch {
      setWrong(true);
    }
  };
  return (
    <>
      <textarea
        {...about}
        class="growing code"
        rows={2}
        dir="ltr"
        spellcheck={false}
        aria-invalid={wrong || about["aria-invalid"]}
        value={value === undefined && !wrong ? "" : text}
        ref={(field) => field?.setCustomValidity(wrong ? words.notJson : "")}
        onInput={(event) => take(event.currentTarget.value)}
      />
      {wrong && <p class="failure" role="alert">{words.notJson}</p>}
    </>
  );
}
