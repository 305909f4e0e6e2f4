// Everything that can be done by a key or from the palette, in one registry; help and palette are made of it.

import { words } from "./words";

export interface Command {
  id: string;
  label: () => string;
  /** As in "mod+shift+o"; mod is Command on a Mac and Ctrl elsewhere. */
  keys?: string;
  run: () => void;
}

const IS_MAC = /mac|iphone|ipad/i.test(navigator.platform);

/** What keys do in particular places, for the help: these are handled where they are typed. */
export function fixedKeys(): [keys: string, label: string][] {
  return [
    ["enter", words.keySend],
    ["shift+enter", words.keyNewLine],
    ["alt+enter", words.keyQueue],
    ["escape", words.keyStop],
    ["y", words.keyYes],
    ["n", words.keyNo],
  ];
}

/** Return keys as people read them. */
export function shown(keys: string): string {
  const names: { [key: string]: string } = { mod: IS_MAC ? "⌘" : "Ctrl", shift: IS_MAC ? "⇧" : "Shift", alt: IS_MAC ? "⌥" : "Alt", enter: "Enter", escape: "Esc" };
  return keys.split("+").map((key) => names[key] ?? key.toUpperCase()).join(IS_MAC ? "" : "+");
}

/** Returns what closes something when Escape is pressed in it, and only that: not what it stands in. */
export function onEscape(close: () => void): (event: KeyboardEvent) => void {
  return (event) => {
    const isInDialog = event.target instanceof Element && event.target.closest("dialog") !== null; // it closes itself
    if (event.key !== "Escape" || isInDialog) return;
    event.stopPropagation();
    close();
  };
}

function isPressed(keys: string, event: KeyboardEvent): boolean {
  const parts = keys.split("+");
  const mod = IS_MAC ? event.metaKey : event.ctrlKey;
  return (
    parts.at(-1) === event.key.toLowerCase() &&
    parts.includes("mod") === mod &&
    parts.includes("alt") === event.altKey &&
    (parts.includes("shift") === event.shiftKey || !/^[a-z]$/.test(parts.at(-1) ?? "")) // a sign may need Shift
  );
}

/** Run the command whose keys were pressed; false if there is none. */
export function press(commands: Command[], event: KeyboardEvent): boolean {
  const found = commands.find((one) => one.keys !== undefined && isPressed(one.keys, event));
  if (found === undefined) return false;
  event.preventDefault();
  found.run();
  return true;
}
