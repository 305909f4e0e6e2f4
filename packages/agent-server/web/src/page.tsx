// The whole page: the list of sessions on one side, the open one on the other.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { client, list, logOut, wordsOf } from "./api";
import { type Command, press } from "./commands";
import { Conversation } from "./conversation";
import { ConversationView } from "./conversation_view";
import { FirstRun, readSetup } from "./first_run";
import { Offers } from "./offers";
import { Help, Palette } from "./palette";
import { Cards, OfferDialog } from "./plugin_views";
import { Sessions } from "./sessions";
import { SettingsView } from "./settings_view";
import { useStore } from "./store";
import { keepTheme } from "./theme";
import { Sidebar } from "./sidebar";
import type { JsonObject } from "./wire";
import { watchVersion } from "./version";
import { words } from "./words";

function sessionInAddress(): string | undefined {
  return /^#s=(.+)$/.exec(location.hash)?.[1];
}

function sectionInAddress(): string | undefined {
  return /^#settings\/([\w.-]*)$/.exec(location.hash)?.[1];
}

export interface Choices {
  agents: string[];
  models: string[];
}

export function Page({ speak }: { speak: (language: string) => void }) {
  const sessions = useMemo(() => new Sessions(), []);
  const [id, setId] = useState(sessionInAddress());
  const [section, setSection] = useState(sectionInAddress());
  const [setup, setSetup] = useState(false);
  const [shown, setShown] = useState<"palette" | "help">();
  const [menu, setMenu] = useState(false);
  const [failure, setFailure] = useState("");
  const [notice, setNotice] = useState("");
  const [reload, setReload] = useState<() => void>();
  const [choices, setChoices] = useState<Choices>({ agents: [], models: [] });
  const conversation = useMemo(
    () => (id === undefined ? undefined : new Conversation(id, () => void sessions.refresh())),
    [id, sessions],
  );

  useEffect(() => {
    const follow = (): void => {
      setId(sessionInAddress());
      setSection(sectionInAddress());
    };
    const refresh = (): void => {
      if (document.visibilityState === "visible") sessions.refresh().catch((error) => setFailure(wordsOf(error)));
    };
    refresh();
    void readChoices().then(setChoices, () => undefined);
    watchVersion((now) => setReload(() => now));
    // Only whoever operates the server may set it up; others are refused, and need not hear of it.
    readSetup().then(({ needed }) => needed && setSetup(true), () => undefined);
    addEventListener("hashchange", follow);
    document.addEventListener("visibilitychange", refresh);
    return () => {
      removeEventListener("hashchange", follow);
      document.removeEventListener("visibilitychange", refresh);
    };
  }, [sessions]);

  /** On a narrow screen the list lies above the rest, which then cannot be used; the focus moves with it. */
  const wasMenu = useRef(false);
  useEffect(() => {
    const main = document.querySelector("main");
    const isOver = menu && matchMedia("(max-width: 700px)").matches;
    const focused = document.activeElement;
    if (main) main.inert = isOver;
    if (isOver && !wasMenu.current && !focused?.closest(".sidebar")) document.querySelector<HTMLElement>(".sidebar .narrow")?.focus();
    if (!isOver && wasMenu.current && (focused === document.body || focused?.closest(".sidebar"))) main?.querySelector<HTMLElement>(".narrow")?.focus();
    wasMenu.current = isOver;
  });

  useLayoutEffect(() => {
    void conversation?.load(); // before the rest of the page asks for anything: a browser has six connections
    return () => conversation?.close();
  }, [conversation]);

  const open = (chosen: string | undefined): void => {
    history.pushState(null, "", chosen === undefined ? "/" : `#s=${chosen}`);
    setId(chosen);
    setSection(undefined);
    setMenu(false);
  };
  const openSection = (name: string): void => {
    location.hash = `#settings/${name}`;
    setMenu(false);
  };

  /** Make a session; what is said first follows when it is on the screen. */
  const create = async (): Promise<Conversation> => {
    const made = await sessions.create();
    const begun = new Conversation(made.id, () => void sessions.refresh());
    await begun.load();
    begun.close();
    void sessions.refresh();
    return begun;
  };

  const navigate = (place: string): void => {
    if (place === "sessions") {
      setMenu(true);
      focusOn("search");
    } else openSection(place === "settings" ? "values" : place);
  };
  const offers = useMemo(
    () =>
      new Offers(undefined, {
        note: (level, text) => (level === "error" ? setFailure(text) : setNotice(text)),
        setInput: () => undefined,
        reload: () => void sessions.refresh(),
        open,
        navigate,
      }),
    [sessions],
  );
  useEffect(() => void offers.read().catch(() => undefined), [offers]);
  useStore(offers);
  const focusOn = (place: string): void => document.getElementById(place)?.focus();
  const commands: Command[] = [
    { id: "palette", label: () => words.palette, keys: "mod+k", run: () => setShown("palette") },
    {
      id: "new",
      label: () => words.newSession,
      keys: "mod+shift+o",
      run: () => {
        open(undefined);
        focusOn("composer");
      },
    },
    {
      id: "search",
      label: () => words.searchSessions,
      keys: "mod+shift+f",
      run: () => {
        setMenu(true);
        focusOn("search");
      },
    },
    { id: "composer", label: () => words.writeMessage, keys: "mod+shift+m", run: () => focusOn("composer") },
    { id: "settings", label: () => words.settings, keys: "mod+,", run: () => openSection("models") },
    { id: "connect", label: () => words.connectModel, run: () => setSetup(true) },
    ...(["light", "dark", "system"] as const).map((name) => ({ id: `theme ${name}`, label: () => words.themeOf(name), run: () => keepTheme(name) })),
    ...offers.at("application_action").map((offer) => ({ id: `${offer.action.plugin} ${offer.action.id}`, label: () => offer.label, run: () => offers.begin(offer) })),
    { id: "log out", label: () => words.logOut, run: () => void logOut() },
    { id: "help", label: () => words.shortcuts, keys: "mod+/", run: () => setShown("help") },
  ];
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => void press(commands, event);
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  });

  return (
    <div class={menu ? "page with-menu" : "page"}>
      <Sidebar sessions={sessions} current={id} open={open} close={() => setMenu(false)} speak={speak} offers={offers} openSettings={() => openSection("models")} />
      {menu && <button type="button" class="shade" aria-label={words.closeList} onClick={() => setMenu(false)} />}
      {section !== undefined && (
        <SettingsView section={section} open={openSection} close={() => open(undefined)} connect={() => setSetup(true)} agentsChanged={() => void readChoices().then(setChoices, () => undefined)} showMenu={() => setMenu(true)} />
      )}
      {section === undefined && <ConversationView
        key={id ?? "new"}
        conversation={conversation}
        choices={choices}
        create={create}
        open={open}
        showMenu={() => setMenu(true)}
        reloadList={() => void sessions.refresh()}
        navigate={navigate}
      />}
      {shown === "palette" && <Palette commands={commands.filter((one) => one.id !== "palette")} open={open} close={() => setShown(undefined)} />}
      {shown === "help" && <Help commands={commands} close={() => setShown(undefined)} />}
      {setup && (
        <FirstRun
          close={(changed) => {
            setSetup(false);
            if (changed) void readChoices().then(setChoices, () => undefined);
          }}
        />
      )}
      <OfferDialog offers={offers} />
      {(["banner", "inline", "modal"] as const).map((one) => <Cards key={one} offers={offers} presentation={one} />)}
      {notice && <p class="toast" role="status">{notice} <button type="button" onClick={() => setNotice("")}>{words.close}</button></p>}
      {failure && <p class="toast error" role="alert">{failure}</p>}
      {reload && (
        <p class="toast" role="status">
          {words.newVersion} <button type="button" class="primary" onClick={reload}>{words.reload}</button>
        </p>
      )}
    </div>
  );
}

async function readChoices(): Promise<Choices> {
  const [agents, models] = await Promise.all([list<JsonObject>(client.listAgents()), list<JsonObject>(client.listModels())]);
  const ids = (found: JsonObject[]): string[] => found.map((one) => String(one["id"] ?? one["name"] ?? "")).filter(Boolean);
  return { agents: ids(agents), models: ids(models) };
}
