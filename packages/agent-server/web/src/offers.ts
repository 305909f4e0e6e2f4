// What plugins offer: actions with their places on the screen, and the cards that they answer with.

import { as, client, list } from "./api";
import { Store } from "./store";
import { oneLine } from "./text";
import { words } from "./words";
import type { Action, ActionResult, Display, Effect, Input, JsonObject, UiElement } from "./wire";

/** Where an action can be offered. One that no element places is offered for its session, or for the application. */
export type Place = "session_action" | "message_action" | "composer_action" | "session_list_action" | "application_action" | "collection";

export interface Offer {
  action: Action;
  element: UiElement | undefined;
  place: Place;
  label: string;
}

export interface Card {
  id: string;
  plugin: string;
  display: Display;
}

/** What an answer of a plugin may do to the page. */
export interface Surroundings {
  note: (level: "info" | "warning" | "error", text: string) => void;
  open: (session: string) => void;
  reload: (what: "session" | "sessions" | "all") => void;
  navigate: (place: string) => void;
  setInput: (text: string) => void;
}

export class Offers extends Store {
  items: Offer[] = [];
  /** Lists of things that plugins keep. */
  collections: UiElement[] = [];
  cards: Card[] = [];
  /** The offer whose form is open, what its place says about its inputs, and what the others begin with. */
  asked: { offer: Offer; given: JsonObject; begins: JsonObject } | undefined;
  /** How many actions have run: what they keep may be another then. */
  ran = 0;

  constructor(
    readonly session: string | undefined,
    private readonly surroundings: Surroundings,
  ) {
    super();
  }

  async read(): Promise<void> {
    const { session } = this;
    const [actions, elements] = await Promise.all([
      list<Action>(session === undefined ? client.listApplicationActions() : client.listSessionActions(session)),
      list<UiElement>(client.listElements({ sessionId: session ?? null })),
    ]);
    const ordered = elements.sort((a, b) => (a.order ?? 0) - (b.order ?? 0));
    this.items = actions.filter((action) => action.manual ?? !action.trigger).flatMap((action) => {
      const own = ordered.filter((one) => one.plugin === action.plugin && one.action_id === action.id);
      const placed = own.filter((one) => one.ui_type !== "collection");
      return placed.length ? placed.map((element) => offerOf(action, element)) : [offerOf(action, undefined)];
    });
    this.collections = ordered.filter((one) => one.ui_type === "collection");
    const isKept = ({ plugin, id }: Action): boolean => this.collections.some((one) => one.plugin === plugin && [one.action_id, ...(one.item_actions ?? [])].includes(id));
    for (const offer of this.items) if (isKept(offer.action)) offer.place = "collection";
    this.items.sort((a, b) => (a.element?.order ?? 1e6) - (b.element?.order ?? 1e6));
    this.changed();
  }

  at(...places: Place[]): Offer[] {
    return this.items.filter((one) => places.includes(one.place));
  }

  /** Begin an action: with its form if it wants to know something or to be confirmed, at once if not. */
  begin(offer: Offer, given: JsonObject = {}, begins: JsonObject = {}): void {
    const own: JsonObject = this.session === undefined ? {} : { session_id: this.session };
    const known = Object.fromEntries(Object.entries({ ...own, ...given }).filter(([name]) => inputsOf(offer).some((input) => input.name === name)));
    const isAsked = inputsOf(offer).some((input) => !(input.name in known)) || questionOf(offer) !== "" || offer.element?.dialog?.body;
    if (isAsked) {
      this.asked = { offer, given: known, begins };
      this.changed();
    } else {
      this.run(offer, known, false).catch((error: unknown) => this.surroundings.note("error", error instanceof Error ? error.message : String(error)));
    }
  }

  cancel(): void {
    this.asked = undefined;
    this.changed();
  }

  async run(offer: Offer, params: JsonObject, confirmed: boolean): Promise<void> {
    const wantsSession = this.session !== undefined && inputsOf(offer).some((input) => input.name === "session_id");
    const about: JsonObject = wantsSession ? { session_id: this.session ?? null } : {};
    await this.execute(offer.action.plugin, offer.action.id, { ...about, ...params }, confirmed);
  }

  /** Run an action by its name: a card may name one that is not offered by itself. */
  async execute(plugin: string, id: string, params: JsonObject, confirmed = false): Promise<void> {
    const result = await this.ask(plugin, id, params, confirmed);
    this.ran += 1;
    this.show(plugin, result);
  }

  /** Return what an action answers; nothing of it is shown. */
  async ask(plugin: string, id: string, params: JsonObject, confirmed = false): Promise<ActionResult> {
    const isOfApplication = this.session === undefined || this.named(plugin, id)?.action.action_owner === "application";
    const body = { params, confirmed };
    const answer = isOfApplication ? client.runApplicationAction(plugin, id, body) : client.runSessionAction(this.session ?? "", plugin, id, body);
    return (await as<{ result: ActionResult }>(answer)).result;
  }

  named(plugin: string, id: string): Offer | undefined {
    return this.items.find((one) => one.action.plugin === plugin && one.action.id === id);
  }

  /** Run an action that a card names; one that wants to be confirmed asks first. */
  async follow(plugin: string, id: string, params: JsonObject): Promise<void> {
    const offer = this.named(plugin, id);
    if (offer && questionOf(offer)) this.begin(offer, params);
    else if (offer) await this.run(offer, params, false);
    else await this.execute(plugin, id, params);
  }

  dismiss(card: Card): void {
    this.cards = this.cards.filter((one) => one !== card);
    this.changed();
  }

  private show(plugin: string, result: ActionResult): void {
    const { display } = result;
    if (result.error?.message) this.surroundings.note("error", result.error.message);
    if (display) this.put(plugin, display);
    else if (typeof result.message === "string" && result.message) this.surroundings.note("info", result.message);
    for (const effect of result.ui_effects ?? []) this.take(plugin, effect);
    this.changed();
  }

  /** Show a card; one with the id of another takes its place. */
  private put(plugin: string, display: Display): void {
    const id = display.display_id ?? crypto.randomUUID();
    const at = this.cards.findIndex((card) => card.id === id && card.plugin === plugin);
    const card = { id, plugin, display };
    this.cards = at < 0 ? [...this.cards, card] : this.cards.with(at, card);
  }

  private take(plugin: string, effect: Effect): void {
    const { note, open, reload, navigate, setInput } = this.surroundings;
    if (effect.type === "toast") note(effect.variant === "error" || effect.variant === "warning" ? effect.variant : "info", effect.text ?? "");
    else if (effect.type === "open_session" && effect.session_id) open(effect.session_id);
    else if (effect.type === "reload") reload(effect.what ?? "all");
    else if (effect.type === "navigate") navigate(effect.to ?? "");
    else if (effect.type === "set_input") setInput(effect.text ?? "");
    else if (effect.type === "open_url" && effect.url) {
      // A page opens nothing by itself: a person sees where it leads, and clicks.
      this.put(plugin, { body: words.pageToSee, actions: [{ kind: "open_url", id: "open", label: words.openPage, url: effect.url }] });
    } else note("info", words.unknownEffect(oneLine(effect.type, 40)));
  }
}

function offerOf(action: Action, element: UiElement | undefined): Offer {
  const places: Place[] = ["session_action", "message_action", "composer_action", "session_list_action", "application_action"];
  const own = action.action_owner === "application" ? "application_action" : "session_action";
  const place = places.find((one) => one === element?.ui_type) ?? own;
  return { action, element, place, label: oneLine(element?.label ?? action.label ?? action.id, 80) };
}

/** Return the inputs of an action: what the action declares, with what the dialog says of each. */
export function inputsOf({ action, element }: Offer): Input[] {
  const declared = Array.isArray(action.inputs)
    ? action.inputs
    : Object.entries(action.inputs ?? {}).map(([name, input]) => ({ ...input, name }));
  const said = element?.dialog?.inputs ?? [];
  return declared.map((input) => ({ ...said.find((one) => one.name === input.name), ...input }));
}

/** Return what must be answered with yes before an action runs; empty if it just runs. */
export function questionOf({ action, element, label }: Offer): string {
  const asked = action.confirm ?? element?.dialog?.confirm;
  return asked === true ? `${label}?` : asked || "";
}
