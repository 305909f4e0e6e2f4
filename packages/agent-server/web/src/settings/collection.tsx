import { useEffect, useState } from "preact/hooks";
import { client, wordsOf } from "../api";
import { useLoaded } from "../loaded";
import { inputsOf, Offers, type Offer } from "../offers";
import { Cards, OfferDialog } from "../plugin_views";
import { useStore } from "../store";
import { oneLine, visible } from "../text";
import { words } from "../words";
import type { Item, UiElement } from "../wire";

/** Return what plugins keep, as their collections: those of the application, and of the agent that was used last. */
export function useCollections(note: (text: string) => void): Offers | undefined {
  const [offers, setOffers] = useState<Offers>();
  useEffect(() => {
    const find = async (): Promise<Offers> => {
      const [latest] = (await client.listSessions({ limit: 1 })).items;
      const nothing = (): void => undefined;
      const found = new Offers(latest?.id, { note: (_level, text) => note(text), open: nothing, reload: nothing, navigate: nothing, setInput: nothing });
      await found.read();
      return found;
    };
    find().then(setOffers, (error: unknown) => note(wordsOf(error)));
  }, []);
  return offers;
}

/** The things that a plugin keeps, with what can be done with each: from its schemas alone. */
export function Collection({ element, offers }: { element: UiElement; offers: Offers }) {
  useStore(offers);
  const [query, setQuery] = useState("");
  const { plugin, action_id: listed = "" } = element;
  const canSearch = takes(offers.named(plugin, listed), "query");
  const read = async (): Promise<Item[]> => {
    const result = await offers.ask(plugin, listed, canSearch ? { query } : {});
    if (result.error?.message) throw new Error(result.error.message);
    return result.items ?? [];
  };
  const { data, failure } = useLoaded(read, offers.ran, query, plugin, listed);
  const actions = (element.item_actions ?? []).map((id) => offers.named(plugin, id)).filter((one) => one !== undefined);
  return (
    <>
      {element.description && <p class="quiet">{visible(element.description)}</p>}
      <p class="buttons">
        {actions.filter((offer) => !takes(offer, "item_id")).map((offer) => <button key={offer.action.id} type="button" class="primary" onClick={() => offers.begin(offer)}>{offer.label}</button>)}
      </p>
      {canSearch && <input type="search" aria-label={words.findItem} placeholder={words.findItem} value={query} onInput={(event) => setQuery(event.currentTarget.value)} />}
      {failure && <p class="failure" role="alert">{visible(failure)}</p>}
      {(["inline", "banner", "modal"] as const).map((one) => <Cards key={one} offers={offers} presentation={one} />)}
      <OfferDialog offers={offers} />
      {data?.length === 0 && <p class="quiet">{words.nothingKept}</p>}
      <ul class="things">
        {data?.map((item) => <ItemCard key={item.id} item={item} offers={offers} actions={actions.filter((offer) => takes(offer, "item_id") && (item.actions?.includes(offer.action.id) ?? true))} />)}
      </ul>
    </>
  );
}

function takes(offer: Offer | undefined, name: string): boolean {
  return offer !== undefined && inputsOf(offer).some((input) => input.name === name);
}

function ItemCard({ item, offers, actions }: { item: Item; offers: Offers; actions: Offer[] }) {
  const title = oneLine(item.title ?? "");
  const isOn = item.enabled ?? true;
  return (
    <li>
      {title && <h3 dir="auto">{title} {item.enabled !== undefined && <span class={isOn ? "badge good" : "badge"}>{isOn ? words.on : words.off}</span>}</h3>}
      {item.text && <p class="plain" dir="auto">{visible(item.text)}</p>}
      {item.problem && <p class="failure">{visible(item.problem)}</p>}
      {item.origin && <p class="quiet origin">{visible(item.origin)}</p>}
      {actions.length > 0 && (
        <p class="buttons">
          {actions.map((offer) => {
            const isSwitch = item.enabled !== undefined && takes(offer, "enabled");
            const label = isSwitch ? (isOn ? words.switchOff : words.switchOn) : offer.label;
            const given = { item_id: item.id, ...(isSwitch ? { enabled: !isOn } : {}) };
            return <button key={offer.action.id} type="button" aria-label={`${label}: ${title || item.id}`} onClick={() => offers.begin(offer, given, item.values ?? {})}>{label}</button>;
          })}
        </p>
      )}
    </li>
  );
}
