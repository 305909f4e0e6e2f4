// All branches of a conversation as a tree; each shows the words with which it begins to differ.

import { useEffect, useRef, useState } from "preact/hooks";
import { as, client } from "./api";
import type { BranchNode, Branches } from "./branches";
import { namesOf, textOf } from "./entries";
import { ago, oneLine } from "./text";
import { words } from "./words";
import type { Message, SessionInfo } from "./wire";

interface Props {
  branches: Branches;
  current: string;
  open: (id: string) => void;
  close: () => void;
}

export function BranchTree({ branches, current, open, close }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const choose = (id: string): void => {
    close();
    open(id);
  };
  return (
    <dialog ref={dialog} class="tree" aria-labelledby="tree-title" onClose={close}>
      <h2 id="tree-title">{words.branches}</h2>
      <Level nodes={branches.trees()} current={current} choose={choose} />
      <div class="buttons"><button type="button" onClick={close}>{words.close}</button></div>
    </dialog>
  );
}

function Level({ nodes, current, choose }: { nodes: BranchNode[]; current: string; choose: (id: string) => void }) {
  return (
    <ul>
      {nodes.map(({ info, children }) => (
        <li key={info.id}>
          <button type="button" class="branch" aria-current={info.id === current ? "page" : undefined} onClick={() => choose(info.id)}>
            <span dir="auto"><FirstWords info={info} /></span>
            <span class="quiet">{words.messages(info.messages)} · {ago(info.updated)}</span>
          </button>
          {children.length > 0 && <Level nodes={children} current={current} choose={choose} />}
        </li>
      ))}
    </ul>
  );
}

/** The first message that is the branch's own. */
function FirstWords({ info }: { info: SessionInfo }) {
  const [text, setText] = useState("");
  const index = info.forked_at ?? 0;
  useEffect(() => {
    if (index >= info.messages) return;
    as<{ items: Message[] }>(client.readMessages(info.id, { limit: 1, before: index + 1 })).then(
      (page) => setText(page.items[0] ? textOf(page.items[0]) || namesOf(page.items[0]) : ""),
      () => undefined,
    );
  }, [info.id, index]);
  return <>{oneLine(text, 80) || oneLine(info.title, 80) || words.newSession}</>;
}
