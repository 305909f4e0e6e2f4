// A scrolled list of which only the rows near the screen exist, so that a session may have any length.
//
// Rows have unknown heights: those that were drawn once are measured, the others count as an average row. The
// first row on the screen is the anchor: whatever changes above it, it stays where it is. A reader at the end is
// kept at the end while text streams in; a reader who scrolls up is left alone.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const OVERSCAN = 600; // pixels above and below the screen that are drawn as well
const NEAR_END = 60;
const USUAL_HEIGHT = 90;

interface Props {
  /** The position of the first row: it becomes smaller when rows come before it, and the others keep theirs. */
  first: number;
  count: number;
  draw: (at: number) => ComponentChildren;
  label: string;
  busy: boolean;
  /** What stands above the first row and below the last. */
  above?: ComponentChildren;
  below?: ComponentChildren;
  /** Somebody has come near the first row. */
  reachTop: () => void;
  /** Draws the button that leads back to the end. */
  toEnd: (jump: () => void) => ComponentChildren;
}

export function VirtualList({ first, count, draw, label, busy, above, below, reachTop, toEnd }: Props) {
  const view = useRef(new Viewport()).current;
  const box = useRef<HTMLDivElement>(null);
  const [, redraw] = useState(0);
  const again = (): void => redraw((number) => number + 1);
  const { from, to, before, after } = view.range(first, count);

  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    view.attach(element, again);
    return () => view.detach();
  }, [view]);
  useLayoutEffect(() => {
    if (box.current === null) return;
    view.observe(box.current);
    view.settle(box.current);
    if (view.isNearTop(box.current, before)) reachTop();
  });

  return (
    <div class="scrolled">
      <div
        class="transcript"
        ref={box}
        role="log"
        aria-live="off"
        aria-label={label}
        aria-busy={busy}
        tabIndex={0}
        onScroll={(event) => view.scroll(event.currentTarget) && again()}
      >
        {above}
        <div class="room" style={{ height: `${before}px` }} />
        {Array.from({ length: to - from }, (_, number) => (
          <div class="row" key={first + from + number} data-position={first + from + number}>{draw(from + number)}</div>
        ))}
        <div class="room" style={{ height: `${after}px` }} />
        {below}
      </div>
      {!view.atEnd && count > 0 && toEnd(() => {
        view.atEnd = true;
        again();
      })}
    </div>
  );
}

class Viewport {
  atEnd = true;
  private readonly heights = new Map<number, number>();
  private average = USUAL_HEIGHT;
  private top = 0;
  private height = window.innerHeight;
  private anchor: { position: number; offset: number } | undefined;
  private resized: ResizeObserver | undefined;
  private readonly observed = new Set<Element>();
  private drawn = { from: 0, to: 0, first: 0 };

  attach(box: HTMLElement, redraw: () => void): void {
    this.resized = new ResizeObserver(() => {
      this.height = box.clientHeight;
      const before = this.average;
      if (this.measure(box)) redraw();
      else if (before !== this.average) this.settle(box);
    });
    this.resized.observe(box);
    this.observe(box);
  }

  detach(): void {
    this.resized?.disconnect();
    this.observed.clear();
  }

  /** Return which rows to draw, and how much room the others take. */
  range(first: number, count: number): { from: number; to: number; before: number; after: number } {
    const heights = Array.from({ length: count }, (_, at) => this.heights.get(first + at) ?? this.average);
    const total = heights.reduce((sum, height) => sum + height, 0);
    const shift = this.anchor === undefined || this.atEnd ? 0 : this.moved(first, heights);
    const top = this.atEnd ? total - this.height : this.top + shift;
    let from = 0;
    let before = 0;
    while (from < count && before + (heights[from] ?? 0) < top - OVERSCAN) before += heights[from++] ?? 0;
    let to = from;
    let height = before;
    while (to < count && (height < top + this.height + OVERSCAN || this.atEnd)) height += heights[to++] ?? 0;
    this.drawn = { from, to, first };
    return { from, to, before, after: total - height };
  }

  /** Return how far the anchor is from where the list had it: rows have come before it, or were measured. */
  private moved(first: number, heights: number[]): number {
    const at = (this.anchor?.position ?? first) - first;
    const now = heights.slice(0, at).reduce((sum, height) => sum + height, 0);
    return now + (this.anchor?.offset ?? 0) - this.top;
  }

  /** Take a scroll of the reader; true if other rows must be drawn. */
  scroll(box: HTMLElement): boolean {
    const wasAtEnd = this.atEnd;
    const left = box.scrollHeight - box.scrollTop - box.clientHeight;
    const isUp = box.scrollTop < this.top;
    this.atEnd = left < 2 || (!isUp && left < NEAR_END) || (this.atEnd && !isUp);
    this.top = box.scrollTop;
    this.height = box.clientHeight;
    this.hold(box);
    return wasAtEnd !== this.atEnd || this.needsOthers(box);
  }

  private needsOthers(box: HTMLElement): boolean {
    const rows = this.rows(box);
    const [one, last] = [rows[0], rows.at(-1)];
    if (one === undefined || last === undefined) return false;
    const frame = box.getBoundingClientRect();
    const above = frame.top - one.getBoundingClientRect().top;
    const below = last.getBoundingClientRect().bottom - frame.bottom;
    const isFirst = this.drawn.from === 0;
    return (above < OVERSCAN / 2 && !isFirst) || below < OVERSCAN / 2 || above > OVERSCAN * 3 || below > OVERSCAN * 3 || (isFirst && above < OVERSCAN);
  }

  /** Remember the first row on the screen, and where it stands. */
  private hold(box: HTMLElement): void {
    const { top: edge, bottom } = box.getBoundingClientRect();
    const found = this.rows(box).find((one) => one.getBoundingClientRect().bottom > edge);
    const row = found && found.getBoundingClientRect().top < bottom ? found : undefined; // a jump leaves none there
    this.anchor = row && { position: Number(row.dataset["position"]), offset: edge - row.getBoundingClientRect().top };
  }

  private rows(box: HTMLElement): HTMLElement[] {
    return [...box.children].filter((one): one is HTMLElement => one instanceof HTMLElement && one.classList.contains("row"));
  }

  observe(box: HTMLElement): void {
    if (this.resized === undefined) return;
    const rows = new Set<Element>(this.rows(box));
    for (const row of this.observed) {
      if (rows.has(row)) continue;
      this.resized.unobserve(row);
      this.observed.delete(row);
    }
    for (const row of rows) {
      if (this.observed.has(row)) continue;
      this.resized.observe(row);
      this.observed.add(row);
    }
  }

  /** Note the heights of the rows; true if one is not as it was. */
  private measure(box: HTMLElement): boolean {
    let changed = false;
    for (const row of this.rows(box)) {
      const position = Number(row.dataset["position"]);
      const height = row.getBoundingClientRect().height;
      if (Math.abs((this.heights.get(position) ?? -1) - height) > 0.5) {
        this.heights.set(position, height);
        changed = true;
      }
    }
    const known = [...this.heights.values()];
    if (known.length) this.average = known.reduce((sum, one) => sum + one, 0) / known.length;
    return changed;
  }

  /** Put the list where the reader has it: at the end, or with the anchor where it was. */
  settle(box: HTMLElement): void {
    // A reader may have scrolled since the last frame: that is not undone, though its event is still to come.
    if (this.atEnd && box.scrollTop < this.top - 1) this.scroll(box);
    const scrolled = box.scrollTop - this.top;
    if (this.atEnd) box.scrollTop = box.scrollHeight;
    else if (this.anchor !== undefined) {
      const { position, offset } = this.anchor;
      const row = this.rows(box).find((one) => Number(one.dataset["position"]) === position);
      if (row !== undefined) {
        const off = row.getBoundingClientRect().top - (box.getBoundingClientRect().top - offset - scrolled);
        if (Math.abs(off) > 0.5) box.scrollTop += off;
      }
    }
    this.top = box.scrollTop;
    this.hold(box);
  }

  isNearTop(box: HTMLElement, before: number): boolean {
    return before === 0 && box.scrollTop < this.height && this.drawn.from === 0;
  }
}
