// The command palette: commands and sessions by a few letters; and the help with all shortcuts.

import { useEffect, useRef, useState } from "preact/hooks";
import { client } from "./api";
import { type Command, fixedKeys, shown } from "./commands";
import { oneLine } from "./text";
import { words } from "./words";

interface Props {
  commands: Command[];
  open: (id: string) => void;
  close: () => void;
}

interface Choice {
  key: string;
  label: string;
  about: string;
  run: () => void;
}

const TYPING_MS = 120;

export function Palette({ commands, open, close }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [found, setFound] = useState<Choice[]>([]);
  const [at, setAt] = useState(0);
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    let isOld = false;
    const timer = setTimeout(() => {
      client.listSessions({ query: text.trim() || null, limit: 8 }).then(
        ({ items }) => !isOld && setFound(items.map((one) => ({ key: one.id, label: oneLine(one.title, 80) || words.newSession, about: oneLine(one.match ?? "", 80), run: () => open(one.id) }))),
        () => undefined,
      );
    }, TYPING_MS);
    return () => {
      isOld = true;
      clearTimeout(timer);
    };
  }, [text]);
  const wanted = text.trim().toLowerCase();
  const known = commands
    .filter((one) => one.label().toLowerCase().includes(wanted))
    .map((one): Choice => ({ key: one.id, label: one.label(), about: one.keys ? shown(one.keys) : "", run: one.run }));
  const choices = [...known, ...found];
  const chosen = choices[Math.min(at, choices.length - 1)];
  const take = (choice: Choice | undefined): void => {
    if (choice === undefined) return;
    close();
    choice.run();
  };
  const press = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) setAt((now) => (Math.min(now, choices.length - 1) + step + choices.length) % Math.max(choices.length, 1));
    else if (event.key === "Enter") take(chosen);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} class="palette" aria-label={words.palette} onClose={close}>
      <input
        type="text"
        role="combobox"
        aria-label={words.palette}
        aria-expanded="true"
        aria-controls="palette-choices"
        aria-activedescendant={chosen ? `choice ${chosen.key}`.replaceAll(" ", "-") : undefined}
        placeholder={words.paletteHint}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={press}
      />
      <ul id="palette-choices" role="listbox" aria-label={words.palette}>
        {choices.map((choice) => (
          <li key={choice.key} id={`choice ${choice.key}`.replaceAll(" ", "-")} role="option" aria-selected={choice === chosen} onClick={() => take(choice)}>
            <span dir="auto">{choice.label}</span> <span class="quiet">{choice.about}</span>
          </li>
        ))}
      </ul>
    </dialog>
  );
}

export function Help({ commands, close }: { commands: Command[]; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const rows = [...commands.filter((one) => one.keys).map((one): [string, string] => [one.keys ?? "", one.label()]), ...fixedKeys()];
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={close}>
      <h2 id="help-title">{words.shortcuts}</h2>
      <dl>{rows.map(([keys, label]) => <div key={keys}><dt><kbd>{shown(keys)}</kbd></dt><dd>{label}</dd></div>)}</dl>
      <div class="buttons"><button type="button" onClick={close}>{words.close}</button></div>
    </dialog>
  );
}
