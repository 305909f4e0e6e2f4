// Links by which others read a session: made, copied, taken back. And the page that such a link leads to.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { client, list, wordsOf } from "./api";
import { Conversation } from "./conversation";
import { useStore } from "./store";
import { oneLine } from "./text";
import { CopyButton, Transcript } from "./transcript";
import { language, words } from "./words";

interface Share {
  id: string;
  kind: "link" | "invitation";
  created: number;
  expires: number | null;
  revoked: number | null;
}

const DAY = 86_400;
const DURATIONS = [1, 7, 30];

/** Whether there are others to share with; a server for one person has no links. */
let mayShare: Promise<boolean> | undefined;

function askMayShare(): Promise<boolean> {
  mayShare ??= client.whoAmI().then(
    ({ tenant, level }) => tenant !== null && level !== "read",
    () => false,
  );
  return mayShare;
}

export function ShareButton({ session }: { session: string }) {
  const [may, setMay] = useState(false);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => void askMayShare().then(setMay), []);
  if (!may) return null;
  return (
    <>
      <button type="button" class="share" onClick={() => setOpen(true)}>{words.share}</button>
      {isOpen && <ShareDialog session={session} close={() => setOpen(false)} />}
    </>
  );
}

function ShareDialog({ session, close }: { session: string; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [days, setDays] = useState(7);
  const [links, setLinks] = useState<Share[]>([]);
  const [made, setMade] = useState("");
  const [failure, setFailure] = useState("");
  const read = async (): Promise<void> => {
    const shares = await list<Share>(client.listShares(session));
    setLinks(shares.filter((one) => one.kind === "link" && one.revoked === null && (one.expires ?? Infinity) > Date.now() / 1000));
  };
  const attempt = (work: Promise<unknown>): void => {
    setFailure("");
    work.then(read).catch((error: unknown) => setFailure(wordsOf(error)));
  };
  useEffect(() => {
    dialog.current?.showModal();
    attempt(Promise.resolve());
  }, []);
  const make = async (): Promise<void> => {
    const { secret } = await client.createLink(session, { seconds: days * DAY });
    setMade(`${location.origin}/login?link=${encodeURIComponent(secret ?? "")}`);
  };
  return (
    <dialog ref={dialog} class="sharing" aria-labelledby="share-title" onClose={close}>
      <h2 id="share-title">{words.shareTitle}</h2>
      <p>{words.shareMore}</p>
      <div class="buttons">
        <select aria-label={words.shareFor} value={String(days)} onChange={(event) => setDays(Number(event.currentTarget.value))}>
          {DURATIONS.map((number) => <option key={number} value={String(number)}>{words.shareDays(number)}</option>)}
        </select>
        <button type="button" class="primary" onClick={() => attempt(make())}>{words.makeLink}</button>
      </div>
      {made && (
        <div class="buttons">
          <input class="address" aria-label={words.link} readOnly value={made} onFocus={(event) => event.currentTarget.select()} />
          <CopyButton text={made} />
        </div>
      )}
      {made && <p class="quiet" role="status">{words.linkOnce}</p>}
      {failure && <p class="failure" role="alert">{failure}</p>}
      <ul aria-label={words.links}>
        {links.map((one) => (
          <li key={one.id} class="buttons">
            <span>{one.expires === null ? words.linkForEver : words.linkUntil(new Date(one.expires * 1000).toLocaleString(language))}</span>
            <button
              type="button"
              class="danger"
              onClick={() => {
                setMade("");
                attempt(client.revokeShare(session, one.id));
              }}
            >
              {words.takeBack}
            </button>
          </li>
        ))}
      </ul>
      <div class="buttons"><button type="button" onClick={close}>{words.close}</button></div>
    </dialog>
  );
}

/** Return the session that a link leads to, if the page was opened by one. */
export function readInAddress(): string | undefined {
  const found = /^#read=(.+)$/.exec(location.hash)?.[1];
  return found === undefined ? undefined : decodeURIComponent(found);
}

const nowhere = (): void => undefined;
const never = (): Promise<void> => Promise.resolve();

/** A session for somebody who has a link to it: everything that was said, and nothing to change it with. */
export function Reader({ session }: { session: string }) {
  const conversation = useMemo(() => new Conversation(session, nowhere, true), [session]);
  useStore(conversation);
  useEffect(() => {
    void conversation.load();
    return () => conversation.close();
  }, [conversation]);
  const title = oneLine(conversation.info?.title ?? "") || words.sharedSession;
  useEffect(() => {
    document.title = `${title} · Keelwork`;
  }, [title]);
  return (
    <main class="conversation reader">
      <header class="bar"><h1 dir="auto">{title}</h1><span class="badge">{words.readOnly}</span></header>
      {conversation.gone ? <p class="welcome">{words.sessionGone}</p> : <Transcript conversation={conversation} branch={never} open={nowhere} offers={undefined} />}
      {!conversation.connected && <p class="quiet below" role="status">{words.connectionLost}</p>}
      <p class="unseen" aria-live="polite">{conversation.announcement}</p>
    </main>
  );
}
