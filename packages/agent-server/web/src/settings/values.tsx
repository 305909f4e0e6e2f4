import { useState } from "preact/hooks";
import { as, client, list, wordsOf } from "../api";
import { useLoaded } from "../loaded";
import { words } from "../words";
import type { Json } from "../wire";

interface Setting {
  name: string;
  value: Json;
  origin: string | null;
}

interface Rules {
  type?: string;
  enum?: Json[];
  description?: string;
  properties?: { [name: string]: Rules };
  additionalProperties?: Rules | boolean;
}

interface Changed {
  name: string;
  applies: string;
  problem?: string;
  before: Json | null;
}

/** Every setting that holds, with where it comes from; one that was changed can be put back. */
export function Values() {
  const { data, failure, reload } = useLoaded(() => list<Setting>(client.listSettings()));
  const schema = useLoaded(() => as<Rules>(client.readSettingsSchema()));
  const [wanted, setWanted] = useState("");
  const [changed, setChanged] = useState<Changed>();
  const save = async (name: string, value: Json | null, before: Json | null): Promise<void> => {
    const answer = await as<Omit<Changed, "before">>(client.changeSetting(name, { value }));
    setChanged({ ...answer, name, before });
    reload();
  };
  if (failure) return <p class="failure" role="alert">{failure}</p>;
  const shown = data?.filter((one) => one.name.toLowerCase().includes(wanted.toLowerCase()));
  return (
    <>
      <input type="search" aria-label={words.findSetting} placeholder={words.findSetting} value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
      {changed && (
        <p role="status" class="changed">
          {changed.problem ?? (changed.applies === "now" ? words.settingNow(changed.name) : words.settingRestart(changed.name))}{" "}
          <button type="button" onClick={() => void save(changed.name, changed.before, null).then(() => setChanged(undefined)).catch(() => undefined)}>{words.undo}</button>
        </p>
      )}
      {data?.length === 0 && <p class="quiet">{words.noSettings}</p>}
      <ul class="things">
        {shown?.map((one) => <Value key={one.name} setting={one} rules={rulesOf(schema.data, one.name)} save={save} />)}
      </ul>
      {data && data.length > 0 && <NewValue save={save} />}
    </>
  );
}

/** Return what the schema says of a setting by its dotted name. */
function rulesOf(schema: Rules | undefined, name: string): Rules {
  let here: Rules | undefined = schema;
  for (const step of name.split(".")) {
    const others: Rules | boolean | undefined = here?.additionalProperties;
    here = here?.properties?.[step] ?? (typeof others === "object" ? others : undefined);
  }
  return here ?? {};
}

type Save = (name: string, value: Json | null, before: Json | null) => Promise<void>;

function Value({ setting, rules, save }: { setting: Setting; rules: Rules; save: Save }) {
  const written = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));
  const [text, setText] = useState(written(setting.value));
  const [failure, setFailure] = useState("");
  const isOwn = setting.origin?.includes(":") ?? false; // a line of a file, not a default
  const isHidden = setting.value === "(hidden)";
  const put = (value: Json | null): void => {
    setFailure("");
    save(setting.name, value, isOwn ? setting.value : null).catch((error: unknown) => setFailure(wordsOf(error)));
  };
  const id = `setting ${setting.name}`;
  const type = rules.type ?? (setting.value === null ? "string" : Array.isArray(setting.value) ? "array" : typeof setting.value);
  return (
    <li class="setting">
      <label for={id}><code>{setting.name}</code></label>
      {rules.description && <p class="quiet">{rules.description}</p>}
      {isHidden ? (
        <p>{words.hiddenValue}</p>
      ) : rules.enum ? (
        <select id={id} value={text} onChange={(event) => put(rules.enum?.find((one) => written(one) === event.currentTarget.value) ?? null)}>
          {rules.enum.map((one) => <option key={written(one)} value={written(one)}>{written(one)}</option>)}
        </select>
      ) : type === "boolean" ? (
        <input id={id} type="checkbox" checked={setting.value === true} onChange={(event) => put(event.currentTarget.checked)} />
      ) : (
        <form
          class="inline"
          onSubmit={(event) => {
            event.preventDefault();
            try {
              put(type === "string" ? text : (JSON.parse(text) as Json));
            } catch {
              setFailure(words.notJson);
            }
          }}
        >
          <input id={id} inputMode={type === "number" || type === "integer" ? "decimal" : "text"} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          <button type="submit" disabled={text === written(setting.value)}>{words.save}</button>
        </form>
      )}
      <p class="quiet origin">{setting.origin ?? ""}{isOwn && !isHidden && <> <button type="button" onClick={() => put(null)}>{words.resetSetting}</button></>}</p>
      {failure && <p class="failure" role="alert">{failure}</p>}
    </li>
  );
}

/** A setting that nobody has set yet, by its dotted name. */
function NewValue({ save }: { save: Save }) {
  const [failure, setFailure] = useState("");
  const submit = (form: HTMLFormElement): void => {
    const data = new FormData(form);
    const text = String(data.get("value"));
    let value: Json = text;
    try {
      value = JSON.parse(text) as Json;
    } catch {
      // a plain word is a text
    }
    setFailure("");
    save(String(data.get("name")), value, null).then(() => form.reset()).catch((error: unknown) => setFailure(wordsOf(error)));
  };
  return (
    <form
      class="inline"
      onSubmit={(event) => {
        event.preventDefault();
        submit(event.currentTarget);
      }}
    >
      <input name="name" required aria-label={words.settingName} placeholder={words.settingName} />
      <input name="value" required aria-label={words.settingValue} placeholder={words.settingValue} />
      <button type="submit">{words.setSetting}</button>
      {failure && <p class="failure" role="alert">{failure}</p>}
    </form>
  );
}

