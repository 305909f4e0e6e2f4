// The open session, or the place where a new one begins.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { client, wordsOf } from "./api";
import { ApprovalCard } from "./approval_card";
import { BranchTree } from "./branch_tree";
import { Composer, type Draft } from "./composer";
import { Conversation } from "./conversation";
import { Bars } from "./icons";
import { Inspect } from "./inspect";
import { Offers } from "./offers";
import { Plan } from "./plan";
import { Cards, OfferDialog, OffersMenu } from "./plugin_views";
import type { Choices } from "./page";
import { ShareButton } from "./share";
import { Store, useStore } from "./store";
import { oneLine } from "./text";
import { Transcript } from "./transcript";
import { WaitingMessages } from "./waiting";
import { language, words } from "./words";

interface Props {
  conversation: Conversation | undefined;
  choices: Choices;
  create: () => Promise<Conversation>;
  open: (id: string) => void;
  showMenu: () => void;
  /** What answers of plugins may do outside the conversation. */
  reloadList: () => void;
  navigate: (place: string) => void;
}

const nothing = new Store();
/** What was said in a session that is about to be opened. */
const firstWords = new Map<string, Draft>();

export function ConversationView({ conversation, choices, create, open, showMenu, reloadList, navigate }: Props) {
  useStore(conversation ?? nothing);
  const [tree, setTree] = useState(false);
  const [inspecting, setInspecting] = useState(false);
  const [failure, setFailure] = useState("");
  const inspectButton = useRef<HTMLButtonElement>(null);
  // At once: a later effect could take the focus after the drawer was closed again.
  useLayoutEffect(() => {
    if (inspecting) document.querySelector<HTMLElement>(".inspect [role=tab]")?.focus();
  }, [inspecting]);
  const closeInspect = (): void => {
    setInspecting(false);
    inspectButton.current?.focus();
  };
  const title = oneLine(conversation?.info?.title ?? "") || words.newSession;

  const offers = useMemo(() => {
    if (conversation === undefined) return undefined;
    const reload = (what: string): void => {
      if (what !== "sessions") void conversation.load();
      if (what !== "session") reloadList();
    };
    return new Offers(conversation.id, {
      note: (level, text) => conversation.note(level, text),
      setInput: (text) => conversation.setInput(text),
      open,
      reload,
      navigate,
    });
  }, [conversation]);
  useEffect(() => {
    if (conversation?.loaded) void offers?.read().catch(() => undefined);
  }, [offers, conversation?.loaded, conversation?.info?.agent_id]);

  useEffect(() => {
    document.title = conversation ? `${title} · Keelwork` : "Keelwork";
  }, [title, conversation]);

  useEffect(() => {
    if (!conversation?.loaded) return;
    const words = firstWords.get(conversation.id);
    firstWords.delete(conversation.id);
    if (words) void begin(conversation, words).catch(() => undefined);
  }, [conversation, conversation?.loaded]);

  const submit = async (draft: Draft): Promise<void> => {
    setFailure("");
    try {
      if (conversation !== undefined) return await begin(conversation, draft);
      const made = await create();
      firstWords.set(made.id, draft);
      open(made.id);
    } catch (error) {
      setFailure(wordsOf(error));
      throw error;
    }
  };

  /** Make a branch, and have the agent answer its last message. */
  const branch = async (index: number, how: "edit" | "regenerate", content?: string): Promise<void> => {
    if (conversation === undefined) return;
    const id = conversation.id;
    const made = how === "edit" ? client.editMessage(id, index, { content: content ?? "" }) : client.regenerate(id, index);
    await conversation.attempt(
      made.then((branch) => {
        firstWords.set(branch.id, { text: "", files: [], mode: "steer" });
        open(branch.id);
      }),
    );
  };

  if (conversation?.gone) {
    return <main class="conversation"><Header title={words.sessions} showMenu={showMenu} /><p class="welcome">{words.sessionGone}</p></main>;
  }
  const branches = conversation?.branches;
  return (
    <main class="conversation">
      <Header title={title} showMenu={showMenu}>
        {branches && branches.family.length > 1 && (
          <button type="button" class="show-tree" onClick={() => setTree(true)}>{words.branches} ({branches.family.length})</button>
        )}
        {conversation && branches && tree && <BranchTree branches={branches} current={conversation.id} open={open} close={() => setTree(false)} />}
        {conversation && <Switches conversation={conversation} choices={choices} />}
        {offers && <OffersMenu offers={offers} places={["session_action", "application_action"]} />}
        {conversation && <button type="button" class="show-inspect" ref={inspectButton} aria-pressed={inspecting} onClick={() => setInspecting(!inspecting)}>{words.inspect}</button>}
        {conversation && <ShareButton session={conversation.id} />}
      </Header>
      {offers && <Cards offers={offers} presentation="banner" />}
      {offers && <Cards offers={offers} presentation="modal" />}
      {offers && <OfferDialog offers={offers} />}
      {conversation ? (
        <Transcript conversation={conversation} branch={branch} open={open} offers={offers} />
      ) : (
        <div class="welcome"><h2>{words.welcome}</h2><p>{words.welcomeMore}</p></div>
      )}
      {conversation && inspecting && <Inspect conversation={conversation} close={closeInspect} />}
      <footer class="below">
        {offers && <Cards offers={offers} presentation="inline" />}
        {conversation?.connected === false && <p class="quiet" role="status">{words.connectionLost}</p>}
        {conversation?.approvals.slice(0, 1).map((approval) => (
          <ApprovalCard
            key={approval.id}
            approval={approval}
            others={conversation.approvals.length - 1}
            decide={(decision) => conversation.decide(approval, decision)}
          />
        ))}
        {conversation && <Plan items={conversation.plan} running={conversation.running} />}
        {conversation && <WaitingMessages conversation={conversation} />}
        {failure && <p class="failure" role="alert">{failure}</p>}
        <Composer conversation={conversation} offers={offers} submit={submit} />
        {conversation?.usage && <UsageLine conversation={conversation} />}
      </footer>
      <p class="unseen" aria-live="polite">{conversation?.announcement}</p>
    </main>
  );
}

async function begin(conversation: Conversation, draft: Draft): Promise<void> {
  if (!draft.text && !draft.files.length) return conversation.start();
  const parts = await Promise.all(draft.files.map((file) => file.attach(conversation.id)));
  const shown = draft.files.map((file) => ({ type: "file", name: file.name, mime_type: file.type }));
  await conversation.say(draft.text, parts, shown, draft.mode);
}

function Header({ title, showMenu, children }: { title: string; showMenu: () => void; children?: preact.ComponentChildren }) {
  return (
    <header class="bar">
      <button type="button" class="icon narrow" aria-label={words.sessions} onClick={showMenu}><Bars /></button>
      <h1 dir="auto">{title}</h1>
      {children}
    </header>
  );
}

function Switches({ conversation, choices }: { conversation: Conversation; choices: Choices }) {
  const agent = conversation.info?.agent_id ?? "";
  return (
    <span class="switches">
      {choices.agents.length > 1 && (
        <select aria-label={words.agent} value={agent} disabled={conversation.running} onChange={(event) => void conversation.change({ agent_id: event.currentTarget.value })}>
          {choices.agents.map((name) => <option key={name} value={name}>{name}</option>)}
        </select>
      )}
      {choices.models.length > 1 && (
        <select aria-label={words.model} disabled={conversation.running} onChange={(event) => void conversation.change({ model: event.currentTarget.value })}>
          <option value="">{words.agentsModel}</option>
          {choices.models.map((name) => <option key={name} value={name}>{name}</option>)}
        </select>
      )}
    </span>
  );
}

function UsageLine({ conversation }: { conversation: Conversation }) {
  const total = conversation.usage?.total;
  const tokens = total?.total_tokens ?? (total?.input_tokens ?? 0) + (total?.output_tokens ?? 0);
  if (!tokens) return null;
  const cost = total?.cost ? ` · $${total.cost.toFixed(4)}` : "";
  return <p class="usage quiet">{words.tokens(tokens.toLocaleString(language))}{cost}</p>;
}
