// How the page draws what plugins offer: a menu, forms, and cards in the conversation, as a banner or as a dialog.

import { useEffect, useRef, useState } from "preact/hooks";
import { wordsOf } from "./api";
import { onEscape } from "./commands";
import { Field, valuesOf } from "./form";
import { safeAddress } from "./markdown";
import { type Card, inputsOf, type Offer, type Offers, type Place, questionOf } from "./offers";
import { useStore } from "./store";
import { oneLine, visible } from "./text";
import { CopyButton, MarkdownView } from "./transcript";
import { words } from "./words";
import type { Display, DisplayAction, JsonObject } from "./wire";

export function OffersMenu({ offers, places }: { offers: Offers; places: Place[] }) {
  useStore(offers);
  const menu = useRef<HTMLDetailsElement>(null);
  const items = offers.at(...places);
  if (!items.length) return null;
  /** Close it; the focus goes to what opens it, and a dialog that follows gives it back there. */
  const close = (): void => {
    if (menu.current === null) return;
    menu.current.open = false;
    menu.current.querySelector("summary")?.focus();
  };
  return (
    <details class="menu" ref={menu} onKeyDown={onEscape(close)}>
      <summary>{words.actions}</summary>
      <ul>
        {items.map((offer) => (
          <li key={`${offer.action.plugin} ${offer.action.id}`}>
            <button
              type="button"
              title={offer.element?.description ?? offer.action.description}
              onClick={() => {
                close();
                offers.begin(offer);
              }}
            >
              {offer.label}
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}

/** The form that an action has opened; it is drawn once for each store of offers. */
export function OfferDialog({ offers }: { offers: Offers }) {
  useStore(offers);
  const { asked } = offers;
  if (asked === undefined) return null;
  return <ActionDialog key={`${asked.offer.action.plugin} ${asked.offer.action.id}`} offer={asked.offer} given={asked.given} begins={asked.begins} offers={offers} />;
}

function ActionDialog({ offer, given, begins, offers }: { offer: Offer; given: JsonObject; begins: JsonObject; offers: Offers }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [failure, setFailure] = useState("");
  const [busy, setBusy] = useState(false);
  const inputs = inputsOf(offer).filter((input) => !(input.name in given)).map((input) => ({ ...input, default: begins[input.name] ?? input.default }));
  const about = offer.element?.dialog;
  const question = questionOf(offer);
  useEffect(() => dialog.current?.showModal(), []);
  const submit = async (form: HTMLFormElement): Promise<void> => {
    setBusy(true);
    setFailure("");
    try {
      await offers.run(offer, { ...(await valuesOf(form, inputs, offers.session)), ...given }, question !== "");
      offers.cancel();
    } catch (error) {
      setFailure(wordsOf(error));
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} class="action-dialog" onClose={() => offers.cancel()} aria-label={offer.label}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <h2>{oneLine(about?.title ?? offer.label)}</h2>
        {about?.body && <p class="plain">{visible(about.body)}</p>}
        {inputs.map((input) => <Field key={input.name} input={input} />)}
        {question && <p class="plain question-text">{visible(question)}</p>}
        {failure && <p class="failure" role="alert">{failure}</p>}
        <div class="buttons">
          <button type="button" onClick={() => offers.cancel()}>{words.cancel}</button>
          <button type="submit" class="primary" disabled={busy}>{question ? words.yesDo(offer.label) : offer.label}</button>
        </div>
      </form>
    </dialog>
  );
}

/** The cards of one kind of presentation. */
export function Cards({ offers, presentation }: { offers: Offers; presentation: "inline" | "banner" | "modal" }) {
  useStore(offers);
  const shown = offers.cards.filter(({ display }) => (display.presentation ?? "inline") === presentation);
  if (!shown.length) return null;
  const draw = (card: Card) => (
    <DisplayCard
      key={`${card.plugin} ${card.id}`}
      display={card.display}
      close={() => offers.dismiss(card)}
      run={(action) => offers.follow(action.plugin, action.action_id, action.params ?? {})}
    />
  );
  if (presentation !== "modal") return <div class={`cards ${presentation}s`}>{shown.map(draw)}</div>;
  return <>{shown.slice(0, 1).map((card) => <CardDialog key={`${card.plugin} ${card.id}`} card={card} dismiss={() => offers.dismiss(card)}>{draw(card)}</CardDialog>)}</>;
}

function CardDialog({ card, dismiss, children }: { card: Card; dismiss: () => void; children: preact.ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const canLeave = card.display.dismissible !== false || !card.display.actions?.length;
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="card-dialog" aria-label={oneLine(card.display.title ?? words.actions)} onCancel={(event) => !canLeave && event.preventDefault()} onClose={dismiss}>
      {children}
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
      {display.title && <h2>{oneLine(display.title)}</h2>}
      {display.format === "markdown" ? <MarkdownView text={display.body} /> : <p class="plain">{visible(display.body)}</p>}
      {failure && <p class="failure" role="alert">{failure}</p>}
      <div class="buttons">
        {display.actions?.map((action) => {
          if (action.kind === "open_url") {
            const url = safeAddress(action.url);
            const where = url && (url.protocol === "https:" ? url.host : words.notEncrypted(url.host));
            return url && <a key={action.id} class="button" href={url.href} target="_blank" rel="noopener noreferrer">{oneLine(action.label)} <span class="host">({where})</span></a>;
          }
          if (action.kind === "copy_text") return <span key={action.id}><CopyButton text={action.text} label={oneLine(action.label)} /> <code>{oneLine(action.text, 60)}</code></span>;
          if (action.kind !== "run_action") return <span key={(action as DisplayAction).id} class="quiet">{words.unknownChoice}</span>;
          return <button key={action.id} type="button" disabled={busy} onClick={() => void start(action)}>{oneLine(action.label)}</button>;
        })}
        {(display.dismissible !== false || !display.actions?.length) && <button type="button" onClick={close}>{words.close}</button>}
      </div>
    </section>
  );
}
