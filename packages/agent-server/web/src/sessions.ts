// The list of sessions: search over titles and texts, pins, folders, tags and the archive.

import { client, Problem } from "./api";
import { Store } from "./store";
import type { SessionInfo } from "./wire";

export type ExportForm = "zip" | "md" | "html" | "json";

const MOST_EXPORTED = 100;

interface SessionPage {
  items: SessionInfo[];
  next_cursor: string | null;
}

export interface Filter {
  query: string;
  folder: string;
  tag: string;
  archived: boolean;
}

export class Sessions extends Store {
  items: SessionInfo[] = [];
  pinned: SessionInfo[] = [];
  filter: Filter = { query: "", folder: "", tag: "", archived: false };
  cursor: string | null = null;
  loaded = false;
  /** Every folder and tag that there is. */
  folders: string[] = [];
  tags: string[] = [];
  readonly chosen = new Set<string>();
  private asked = 0;

  async show(filter: Partial<Filter>): Promise<void> {
    this.filter = { ...this.filter, ...filter };
    this.chosen.clear();
    await this.refresh();
  }

  get isFiltered(): boolean {
    const { query, folder, tag, archived } = this.filter;
    return query.trim() !== "" || folder !== "" || tag !== "" || archived;
  }

  async refresh(): Promise<void> {
    const number = (this.asked += 1);
    const [page, pinned, labels] = await Promise.all([this.page(null), this.isFiltered ? { items: [] } : this.pins(), client.listLabels()]);
    if (number !== this.asked) return; // a later search has been asked since
    this.pinned = pinned.items;
    this.folders = labels.folders.map(({ name }) => name);
    this.tags = labels.tags.map(({ name }) => name);
    this.take(page.items, []);
    this.cursor = page.next_cursor;
    this.loaded = true;
    this.changed();
  }

  async more(): Promise<void> {
    if (this.cursor === null) return;
    const page = await this.page(this.cursor);
    this.take(page.items, this.items);
    this.cursor = page.next_cursor;
    this.changed();
  }

  private take(items: SessionInfo[], before: SessionInfo[]): void {
    const known = new Set([...before, ...this.pinned].map((one) => one.id));
    this.items = [...before, ...items.filter((one) => !known.has(one.id))];
  }

  private page(cursor: string | null): Promise<SessionPage> {
    const { query, folder, tag, archived } = this.filter;
    const pinned = this.isFiltered ? null : false; // else they have a list of their own
    return client.listSessions({ limit: 40, query: query.trim() || null, cursor, folder: folder || null, tag: tag || null, archived, pinned });
  }

  private pins(): Promise<SessionPage> {
    return client.listSessions({ limit: 100, pinned: true });
  }

  create(agent?: string): Promise<SessionInfo> {
    return client.createSession(agent ? { agent_id: agent } : {});
  }

  find(id: string): SessionInfo | undefined {
    return [...this.pinned, ...this.items].find((one) => one.id === id);
  }

  choose(id: string, is: boolean): void {
    if (is) this.chosen.add(id);
    else this.chosen.delete(id);
    this.changed();
  }

  async rename(id: string, title: string): Promise<void> {
    await client.changeSession(id, { title });
    await this.refresh();
  }

  async pin(info: SessionInfo): Promise<void> {
    await client.changeSession(info.id, { pinned: !info.labels?.pinned });
    await this.refresh();
  }

  /** Put sessions into a folder or out of it, into the archive or back, or give them tags. */
  async label(ids: Iterable<string>, change: { folder?: string; tags?: string[]; archived?: boolean }): Promise<void> {
    await this.each(ids, (id) => client.changeSession(id, change));
  }

  /** Give sessions one more tag. */
  async tag(ids: Iterable<string>, tag: string): Promise<void> {
    await this.each(ids, (id) => client.changeSession(id, { tags: [...new Set([...(this.find(id)?.labels?.tags ?? []), tag])] }));
  }

  async remove(ids: Iterable<string>): Promise<void> {
    await this.each(ids, (id) => client.deleteSession(id));
  }

  /** Do something with each session; one that is gone already is not a failure. */
  private async each(ids: Iterable<string>, work: (id: string) => Promise<unknown>): Promise<void> {
    try {
      for (const id of [...ids]) {
        await work(id).catch((error: unknown) => {
          if (!(error instanceof Problem && error.status === 404)) throw error;
        });
        this.chosen.delete(id);
      }
    } finally {
      await this.refresh();
    }
  }

  async export(ids: Iterable<string>, form: ExportForm): Promise<void> {
    const wanted = [...ids];
    if (wanted.length === 1) {
      const answer = await client.exportSession(wanted[0] ?? "", { form });
      return save(await answer.blob(), `session-${wanted[0]?.slice(0, 8)}.${form}`);
    }
    for (let at = 0; at < wanted.length; at += MOST_EXPORTED) {
      const answer = await client.exportSessions({ id: wanted.slice(at, at + MOST_EXPORTED), form });
      save(await answer.blob(), "sessions.zip");
    }
  }

  /** Store a session from a file; one with instructions for the model is refused until somebody has read them. */
  async import(file: File, allowSystem = false): Promise<SessionInfo> {
    const made = await client.importSession(file, { allowSystem });
    await this.refresh();
    return made;
  }
}

function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
