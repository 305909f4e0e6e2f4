// The list of sessions, with a search over their titles and texts.

import { client } from "./api";
import { Store } from "./store";
import type { SessionInfo } from "./wire";

interface SessionPage {
  items: SessionInfo[];
  next_cursor: string | null;
}

export class Sessions extends Store {
  items: SessionInfo[] = [];
  query = "";
  cursor: string | null = null;
  loaded = false;
  private asked = 0;

  async search(query: string): Promise<void> {
    this.query = query;
    await this.refresh();
  }

  async refresh(): Promise<void> {
    const number = (this.asked += 1);
    const page = await this.page(null);
    if (number !== this.asked) return; // a later search has been asked since
    this.items = page.items;
    this.cursor = page.next_cursor;
    this.loaded = true;
    this.changed();
  }

  async more(): Promise<void> {
    if (this.cursor === null) return;
    const page = await this.page(this.cursor);
    const known = new Set(this.items.map((one) => one.id));
    this.items = [...this.items, ...page.items.filter((one) => !known.has(one.id))];
    this.cursor = page.next_cursor;
    this.changed();
  }

  private page(cursor: string | null): Promise<SessionPage> {
    return client.listSessions({ limit: 40, query: this.query.trim() || null, cursor });
  }

  create(agent?: string): Promise<SessionInfo> {
    return client.createSession(agent ? { agent_id: agent } : {});
  }

  async rename(id: string, title: string): Promise<void> {
    await client.changeSession(id, { title });
    await this.refresh();
  }

  async remove(id: string): Promise<void> {
    await client.deleteSession(id);
    await this.refresh();
  }
}
