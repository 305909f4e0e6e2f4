// What plugins offer in a session: buttons, forms for their inputs, and the cards that they answer with.

import { useEffect, useRef, useState } from "preact/hooks";
import { as, client, list, wordsOf } from "./api";
import type { Conversation } from "./conversation";
import { Field, valuesOf } from "./form";
import { safeAddress } from "./markdown";
import { CopyButton, MarkdownView } from "./transcript";
import { oneLine, visible } from "./text";
import type { Action, ActionResult, Display, DisplayAction, Input, JsonObject, UiElement } from "./wire";
import { words } from "./words";

interface Offer {
  action: Action;
  label: string;
  element: UiElement | undefined;
}

/** An offer that is asked about, with what is known of its inputs already. */
interface Asked {
  offer: Offer;
  given?: JsonObject;
}

interface Card {
  id: string;
  plugin: string;
  display: Display;
}

const SHOWN = ["session_action", "message_action"];

async function readOffers(session: string): Promise<Offer[]> {
  const [actions, elements] = await Promise.all([
    list<Action>(client.listSessionActions(session)),
    list<UiElement>(client.listElements({ sessionId: session })),
  ]);
  const ordered = elements.filter((one) => SHOWN.includes(one.ui_type)).sort((a, b) => (a.order ?? 0) - (b.order ?? 0));
  return actions
    .filter((action) => action.manual ?? !action.trigger)
    .map((action) => {
      const element = ordered.find((one) => one.plugin === action.plugin && one.action_id === action.id);
      return { action, element, label: oneLine(element?.label ?? action.label ?? action.id, 80) };
    })
    .sort((a, b) => (a.element?.order ?? 0) - (b.element?.order ?? 0));
}

function declared({ inputs }: Action): Input[] {
  return Array.isArray(inputs) ? inputs : Object.entries(inputs ?? {}).map(([name, input]) => ({ ...input, name }));
}

/** Return what to ask before an action runs: the question of the action, or of its dialog. */
function questionOf({ action, element, label }: Offer): string {
  const asked = action.confirm ?? element?.dialog?.confirm;
  return asked === true ? `${label}?` : (asked ?? "");
}

/** Return the inputs of an action: what the action declares, with what the dialog says of each. */
function inputsOf({ action, element }: Offer): Input[] {
  const said = element?.dialog?.inputs ?? [];
  return declared(action)
    .filter((input) => input.name !== "session_id")
    .map((input) => ({ ...said.find((one) => one.name === input.name), ...input }));
}

export function Offers({ conversation, open }: { conversation: Conversation; open: (id: string) => void }) {
  const [offers, setOffers] = useState<Offer[]>([]);
  const [asked, setAsked] = useState<Asked>();
  const [cards, setCards] = useState<Card[]>([]);
  const menu = useRef<HTMLDetailsElement>(null);

  useEffect(() => {
    readOffers(conversation.id).then(setOffers, () => undefined);
  }, [conversation, conversation.info?.agent_id]);

  const show = (plugin: string, result: ActionResult): void => {
    if (result.error?.message) conversation.note("error", result.error.message);
    for (const effect of result.ui_effects ?? []) {
      if (effect.type === "toast" && effect.text) conversation.note("info", effect.text);
      if (effect.type === "open_session" && effect.session_id) open(effect.session_id);
    }
    const { display } = result;
    if (display) {
      const id = display.display_id ?? crypto.randomUUID();
      setCards((now) => {
        const at = now.findIndex((card) => card.id === id && card.plugin === plugin);
        const card = { id, plugin, display };
        return at < 0 ? [...now, card] : now.with(at, card);
      });
    } else if (typeof result.message === "string" && result.message) conversation.note("info", result.message);
  };
  const run = async (action: Action, given: JsonObject, confirmed: boolean): Promise<void> => {
    const { id, plugin } = action;
    const about: JsonObject = declared(action).some((input) => input.name === "session_id") ? { session_id: conversation.id } : {};
    const body = { params: { ...about, ...given }, confirmed };
    const answer =
      action.action_owner === "application"
        ? client.runApplicationAction(plugin, id, body)
        : client.runSessionAction(conversation.id, plugin, id, body);
    show(plugin, (await as<{ result: ActionResult }>(answer)).result);
  };
  /** Run what a card offers; if it asks first, its dialog does that. */
  const follow = async (plugin: string, id: string, given: JsonObject): Promise<void> => {
    const offer = offers.find(({ action }) => action.plugin === plugin && action.id === id);
    if (offer && questionOf(offer)) setAsked({ offer, given });
    else await run(offer?.action ?? { id, plugin }, given, false);
  };

  if (!offers.length) return null;
  return (
    <>
      <details class="menu" ref={menu}>
        <summary>{words.actions}</summary>
        <ul>
          {offers.map((offer) => (
            <li key={`${offer.action.plugin} ${offer.action.id}`}>
              <button
                type="button"
                title={offer.element?.description ?? offer.action.description}
                onClick={() => {
                  if (menu.current) menu.current.open = false;
                  setAsked({ offer });
                }}
              >
                {offer.label}
              </button>
            </li>
          ))}
        </ul>
      </details>
      {asked && (
        <ActionDialog
          {...asked}
          close={() => setAsked(undefined)}
          run={(params) => run(asked.offer.action, params, questionOf(asked.offer) !== "")}
        />
      )}
      <div class="cards">
        {cards.map((card) => (
          <DisplayCard
            key={`${card.plugin} ${card.id}`}
            display={card.display}
            close={() => setCards((now) => now.filter((one) => one !== card))}
            run={(action) => follow(action.plugin, action.action_id, action.params ?? {})}
          />
        ))}
      </div>
    </>
  );
}

interface DialogProps extends Asked {
  close: () => void;
  run: (params: JsonObject) => Promise<void>;
}

function ActionDialog({ offer, given = {}, close, run }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [failure, setFailure] = useState("");
  const [busy, setBusy] = useState(false);
  const inputs = inputsOf(offer).filter((input) => !(input.name in given));
  const question = questionOf(offer);
  const about = offer.element?.dialog;
  useEffect(() => dialog.current?.showModal(), []);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setFailure("");
    try {
      await run({ ...given, ...valuesOf(event.currentTarget as HTMLFormElement, inputs) });
      close();
    } catch (error) {
      setFailure(wordsOf(error));
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} onClose={close} aria-label={offer.label}>
      <form onSubmit={(event) => void submit(event)}>
        <h2>{oneLine(about?.title ?? offer.label)}</h2>
        {about?.body && <p class="plain">{visible(about.body)}</p>}
        {inputs.map((input) => <Field key={input.name} input={input} />)}
        {question && <p class="plain">{visible(question)}</p>}
        {failure && <p class="failure" role="alert">{failure}</p>}
        <div class="buttons">
          <button type="button" onClick={close}>{words.cancel}</button>
          <button type="submit" class="primary" disabled={busy}>{offer.label}</button>
        </div>
      </form>
    </dialog>
  );
}

interface CardProps {
  display: Display;
  close: () => void;
  run: (action: Extract<DisplayAction, { kind: "run_action" }>) => Promise<void>;
}

export function DisplayCard({ display, close, run }: CardProps) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState("");
  const start = async (action: Extract<DisplayAction, { kind: "run_action" }>): Promise<void> => {
    setBusy(true);
    setFailure("");
    try {
      await run(action);
      if (!action.preserve_display) close();
    } catch (error) {
      setFailure(wordsOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <section class={`card ${display.variant ?? "info"} ${display.presentation ?? "inline"}`} role="status">
      {display.title && <h3>{oneLine(display.title)}</h3>}
      {display.format === "markdown" ? <MarkdownView text={display.body} /> : <p class="plain">{visible(display.body)}</p>}
      {failure && <p class="failure" role="alert">{failure}</p>}
      <div class="buttons">
        {display.actions?.map((action) => {
          if (action.kind === "open_url") {
            const url = safeAddress(action.url);
            return url && <a key={action.id} class="button" href={url.href} target="_blank" rel="noopener noreferrer">{oneLine(action.label)} <span class="host">({url.host})</span></a>;
          }
          if (action.kind === "copy_text") return <CopyButton key={action.id} text={action.text} label={oneLine(action.label)} />;
          return <button key={action.id} type="button" disabled={busy} onClick={() => void start(action)}>{oneLine(action.label)}</button>;
        })}
        {display.dismissible !== false && <button type="button" onClick={close}>{words.close}</button>}
      </div>
    </section>
  );
}
