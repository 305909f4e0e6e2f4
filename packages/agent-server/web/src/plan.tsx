// What the agent has planned, as a checklist that follows its work.

import { oneLine, visible } from "./text";
import type { PlanItem } from "./wire";
import { words } from "./words";

const SIGNS: { [state: string]: string } = { pending: "○", in_progress: "◐", done: "●", dropped: "–" };

export function Plan({ items, running }: { items: PlanItem[]; running: boolean }) {
  const done = items.filter((item) => item.state === "done" || item.state === "dropped").length;
  if (!items.length || (done === items.length && !running)) return null;
  const now = items.find((item) => item.state === "in_progress");
  return (
    <details class="plan">
      <summary>{words.plan(done, items.length)}{now && <span class="quiet" dir="auto"> · {oneLine(now.text, 80)}</span>}</summary>
      <ul>
        {items.map((item, at) => (
          <li key={at} class={item.state}>
            <span aria-hidden="true">{SIGNS[item.state] ?? "○"}</span> <span class="words" dir="auto">{visible(item.text)}</span> <span class="unseen">{words.planStates[item.state as keyof typeof words.planStates] ?? ""}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
