// State that components watch: it tells them when it has changed, at most every 50 ms while text streams in.

import { useEffect, useState } from "preact/hooks";

const PAINT_MS = 50;

export class Store {
  private watchers = new Set<() => void>();
  private due: number | undefined;

  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /** Tell everybody now. */
  protected changed(): void {
    if (this.due !== undefined) clearTimeout(this.due);
    this.due = undefined;
    for (const watcher of this.watchers) watcher();
  }

  /** Tell everybody soon, once for everything that changes until then. */
  protected changedSoon(): void {
    this.due ??= window.setTimeout(() => this.changed(), PAINT_MS);
  }
}

/** Have a component drawn again when a store changes. */
export function useStore<T extends Store>(store: T): T {
  const [, draw] = useState(0);
  useEffect(() => store.watch(() => draw((count) => count + 1)), [store]);
  return store;
}
