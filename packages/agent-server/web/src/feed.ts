// The events of one session: from a place on, without a gap and without anything twice.
//
// The browser connects again by itself, with the id of the last event it has. That is not enough: a laptop that
// slept has a connection that looks open, so silence longer than three heartbeats counts as a lost one. A page
// that nobody sees gives its connection back, since a browser has six of them per server, for all its tabs.

import type { Event } from "./wire";

const SILENCE_MS = 30_000;
const AGAIN_MS = 1_000;

export interface FeedReader {
  event(event: Event): void;
  /** The place is not there any more: everything must be read anew. */
  lost(): void;
  deleted(): void;
  connected(is: boolean): void;
}

export class Feed {
  private source: EventSource | undefined;
  private closed = false;
  private heard = Date.now();
  private timer: number;
  private readonly onVisible = (): void => this.look();

  constructor(
    private readonly address: string,
    private after: string,
    private readonly reader: FeedReader,
    private readonly needed: () => boolean,
  ) {
    for (const name of ["visibilitychange", "pageshow", "online"]) this.target(name).addEventListener(name, this.onVisible);
    this.timer = window.setInterval(() => this.look(), 5_000);
    this.connect();
  }

  close(): void {
    this.closed = true;
    clearInterval(this.timer);
    for (const name of ["visibilitychange", "pageshow", "online"]) this.target(name).removeEventListener(name, this.onVisible);
    this.source?.close();
  }

  private target(name: string): EventTarget {
    return name === "visibilitychange" ? document : window;
  }

  private look(): void {
    if (this.closed) return;
    const hidden = document.visibilityState === "hidden";
    if (hidden && !this.needed()) {
      this.source?.close();
      this.source = undefined;
    } else if (!hidden || this.source !== undefined) {
      if (this.source === undefined || Date.now() - this.heard > SILENCE_MS) this.connect();
    }
  }

  private connect(): void {
    this.source?.close();
    this.heard = Date.now();
    const source = new EventSource(`${this.address}?after=${encodeURIComponent(this.after)}`);
    this.source = source;
    const hear = (): void => {
      this.heard = Date.now();
    };
    source.onopen = () => {
      hear();
      this.reader.connected(true);
    };
    source.onmessage = (message: MessageEvent<string>) => {
      hear();
      if (message.lastEventId) this.after = message.lastEventId;
      this.reader.event(JSON.parse(message.data) as Event);
    };
    source.addEventListener("heartbeat", hear);
    source.addEventListener("deleted", () => {
      this.close();
      this.reader.deleted();
    });
    source.onerror = () => {
      if (this.source !== source || this.closed) return;
      this.reader.connected(false);
      if (source.readyState === EventSource.CLOSED) {
        // Not a lost connection but a refusal: the place is gone, the login is, or the server starts again.
        this.source = undefined;
        source.close();
        window.setTimeout(() => !this.closed && this.reader.lost(), AGAIN_MS);
      }
    };
  }
}
