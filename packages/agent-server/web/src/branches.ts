// Branches of a conversation. Each is a session that shares its first messages with the one it was forked from.

import type { SessionInfo } from "./wire";

/** The versions of one message, and which of them is open. */
export interface Versions {
  ids: string[];
  at: number;
}

export interface BranchNode {
  info: SessionInfo;
  children: BranchNode[];
}

export class Branches {
  private readonly byId: Map<string, SessionInfo>;

  constructor(readonly family: SessionInfo[] = []) {
    this.byId = new Map(family.map((one) => [one.id, one]));
  }

  /** Return the indices of messages that have several versions in a session. */
  places(id: string): number[] {
    const indices = new Set(this.family.map((one) => one.forked_at ?? -1));
    return [...indices].filter((index) => index >= 0 && this.versions(id, index).ids.length > 1).sort((a, b) => a - b);
  }

  /** Return the sessions that differ from message *index* on, the oldest first. */
  versions(id: string, index: number): Versions {
    const owner = this.owner(id, index);
    const isVersion = (one: SessionInfo): boolean => one.id === owner || (one.forked_at === index && this.owner(one.id, index) === owner);
    const ids = this.family.filter(isVersion).map((one) => one.id);
    let open: string | null = id;
    while (open !== null && !ids.includes(open)) open = this.byId.get(open)?.parent_id ?? null;
    return { ids, at: open === null ? -1 : ids.indexOf(open) };
  }

  /** Return the session in which the first version of a message was written. */
  private owner(id: string, index: number): string {
    const info = this.byId.get(id);
    const parent = info?.parent_id;
    if (!info || !parent || !this.byId.has(parent) || (info.forked_at ?? 0) < index) return id;
    return this.owner(parent, index);
  }

  /** Return the family as trees: one, unless its first session was deleted. */
  trees(): BranchNode[] {
    const nodes = new Map(this.family.map((info) => [info.id, { info, children: [] as BranchNode[] }]));
    const roots: BranchNode[] = [];
    for (const node of nodes.values()) (nodes.get(node.info.parent_id ?? "")?.children ?? roots).push(node);
    return roots;
  }
}
