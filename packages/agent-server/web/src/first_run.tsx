// Connecting a model: what was found here first, a key or an address, a test, a model. Nothing is saved before the end.

import { useEffect, useRef, useState } from "preact/hooks";
import { as, client, wordsOf } from "./api";
import { useLoaded } from "./loaded";
import { oneLine } from "./text";
import { language, words } from "./words";

interface Connection {
  name: string;
  label: string;
  found: string | null;
  needs_key: boolean;
  needs_address: boolean;
}

interface Offered {
  id: string;
  recommended: boolean;
  context_window: number | null;
}

interface Chosen {
  connection: Connection;
  key: string | null;
  url: string | null;
}

type Step = { at: "connection" } | { at: "key"; connection: Connection } | { at: "model"; chosen: Chosen; models: Offered[] } | { at: "done"; text: string };

const EMBEDDED = "local";

export interface Setup {
  needed: boolean;
  items: Connection[];
}

export function readSetup(): Promise<Setup> {
  return as<Setup>(client.readSetup());
}

export function FirstRun({ close }: { close: (changed: boolean) => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [step, setStep] = useState<Step>({ at: "connection" });
  const [failure, setFailure] = useState("");
  const [busy, setBusy] = useState(false);
  const [unchecked, setUnchecked] = useState<Chosen>();
  useEffect(() => dialog.current?.showModal(), []);
  const leave = (): void => close(step.at === "done");

  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setFailure("");
    try {
      await work();
    } catch (error) {
      setFailure(wordsOf(error));
    } finally {
      setBusy(false);
    }
  };
  const choice = ({ connection, key, url }: Chosen) => ({ name: connection.needs_address ? null : connection.name, key, url });
  const check = (chosen: Chosen): void => {
    setUnchecked(undefined);
    void attempt(async () => {
      setUnchecked(chosen);
      const { items } = await as<{ items: Offered[] }>(client.checkSetup(choice(chosen)));
      setUnchecked(undefined);
      setStep({ at: "model", chosen, models: items });
    });
  };
  const save = (chosen: Chosen, model: string | null, isChecked: boolean): void =>
    void attempt(async () => {
      const { text } = await as<{ text: string }>(client.saveSetup({ ...choice(chosen), model, check: isChecked }));
      setStep({ at: "done", text });
    });
  const choose = (connection: Connection): void => {
    const chosen = { connection, key: null, url: null };
    if (connection.name === EMBEDDED) save(chosen, null, true); // which has it say a word first
    else if (connection.needs_key || connection.needs_address) setStep({ at: "key", connection });
    else check(chosen);
  };

  return (
    <dialog ref={dialog} class="first-run" aria-labelledby="first-run-title" onClose={leave}>
      <h2 id="first-run-title">{words.connectModel}</h2>
      {step.at === "connection" && <ChooseConnection choose={choose} busy={busy} />}
      {step.at === "key" && <EnterKey connection={step.connection} busy={busy} check={check} />}
      {step.at === "model" && <ChooseModel models={step.models} busy={busy} choose={(model) => save(step.chosen, model, true)} />}
      {step.at === "done" && <p class="plain" role="status">{step.text}</p>}
      {busy && <p class="quiet" role="status">{words.testing}</p>}
      {failure && <p class="failure" role="alert">{failure}</p>}
      {unchecked && failure && <SaveAnyway save={(model) => save(unchecked, model, false)} />}
      <div class="buttons">
        {step.at !== "connection" && step.at !== "done" && <button type="button" onClick={() => { setFailure(""); setUnchecked(undefined); setStep({ at: "connection" }); }}>{words.back}</button>}
        <span class="space" />
        <button type="button" class={step.at === "done" ? "primary" : ""} onClick={() => dialog.current?.close()}>{step.at === "done" ? words.startTalking : words.notNow}</button>
      </div>
    </dialog>
  );
}

function ChooseConnection({ choose, busy }: { choose: (connection: Connection) => void; busy: boolean }) {
  const { data, failure } = useLoaded(readSetup);
  const aboutOf = (one: Connection): string => {
    if (one.found) return one.found;
    if (one.needs_address) return words.ownServerMore;
    return one.name === EMBEDDED ? words.embeddedMore : words.withYourKey;
  };
  return (
    <>
      <p>{words.connectModelMore}</p>
      {failure && <p class="failure" role="alert">{failure}</p>}
      <ul class="choices-list">
        {data?.items.map((one) => (
          <li key={one.name || "own"}>
            <button type="button" disabled={busy} class={one.found ? "found" : ""} onClick={() => choose(one)}>
              <strong>{one.needs_address ? words.ownServer : one.name === EMBEDDED ? words.embedded : oneLine(one.label)}</strong>
              <span class="quiet">{aboutOf(one)}</span>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

function EnterKey({ connection, busy, check }: { connection: Connection; busy: boolean; check: (chosen: Chosen) => void }) {
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const data = new FormData(event.currentTarget);
        const text = (name: string): string | null => String(data.get(name) ?? "").trim() || null;
        check({ connection, key: text("key"), url: text("url") });
      }}
    >
      {connection.needs_address && <label class="field"><span>{words.address}</span><input ref={first} name="url" required placeholder="http://127.0.0.1:8080/v1" /></label>}
      <label class="field">
        <span>{connection.needs_address ? words.keyIfNeeded : words.keyOf(connection.label)}</span>
        <input ref={connection.needs_address ? undefined : first} name="key" type="password" autocomplete="off" required={connection.needs_key} />
      </label>
      <button type="submit" class="primary" disabled={busy}>{words.test}</button>
    </form>
  );
}

function ChooseModel({ models, busy, choose }: { models: Offered[]; busy: boolean; choose: (model: string) => void }) {
  const [wanted, setWanted] = useState("");
  const shown = models.filter((one) => one.id.toLowerCase().includes(wanted.toLowerCase()));
  return (
    <>
      <p role="status" class="good">{words.works}</p>
      {models.length > 8 && <input type="search" aria-label={words.findModel} placeholder={words.findModel} onInput={(event) => setWanted(event.currentTarget.value)} />}
      <ul class="choices-list">
        {shown.map((one) => (
          <li key={one.id}>
            <button type="button" disabled={busy} onClick={() => choose(one.id)}>
              <strong>{one.id}</strong>
              <span class="quiet">{[one.recommended && words.recommended, one.context_window && words.tokens(one.context_window.toLocaleString(language))].filter(Boolean).join(" · ")}</span>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

/** Save without a test, by an explicit choice and with a model that is named. */
function SaveAnyway({ save }: { save: (model: string) => void }) {
  return (
    <form
      class="inline"
      onSubmit={(event) => {
        event.preventDefault();
        save(String(new FormData(event.currentTarget).get("model")).trim());
      }}
    >
      <input name="model" required aria-label={words.modelName} placeholder={words.modelName} />
      <button type="submit">{words.saveAnyway}</button>
    </form>
  );
}
