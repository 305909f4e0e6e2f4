// The list of sessions, with a search over their titles and texts.

import { inSession, read, remove, send } from "./api";
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
    const query = new URLSearchParams({ limit: "40" });
    if (this.query.trim()) query.set("query", this.query.trim());
    if (cursor !== null) query.set("cursor", cursor);
    return read<SessionPage>(`/v1/sessions?${query}`);
  }

  create(agent?: string): Promise<SessionInfo> {
    return send<SessionInfo>("POST", "/v1/sessions", agent ? { agent_id: agent } : {});
  }

  async rename(id: string, title: string): Promise<void> {
    await send("PATCH", inSession(id), { title });
    await this.refresh();
  }

  async remove(id: string): Promise<void> {
    await remove(inSession(id));
    await this.refresh();
  }
}
