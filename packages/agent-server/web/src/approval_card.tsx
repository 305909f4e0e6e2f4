// A question of the agent: everything that will act is shown, and each answer says how far it reaches.

import { useEffect, useRef, useState } from "preact/hooks";
import { asText } from "./api";
import { hides, oneLine, visible } from "./text";
import { Arguments, DisplayOfTool } from "./tool_card";
import { callOf } from "./entries";
import type { Approval, Json, JsonObject, ToolDisplay } from "./wire";
import { words } from "./words";

interface Choice {
  key: string;
  label: string;
  decision: JsonObject;
  kind: "yes" | "no" | "more";
}

/** Return the answers that can be given; what reaches further than this call names what it grants. */
function choicesOf(approval: Approval): Choice[] {
  const { parameters, action = "approve", response_schema: schema } = approval.suspension;
  if (action !== "approve") {
    const options = schema?.enum ?? [];
    return options.map((value, at) => ({ key: String(at + 1), label: asText(value), decision: { value }, kind: "more" }));
  }
  const narrow = (parameters.suggestions ?? []).filter((pattern) => pattern.includes("("));
  const pattern = narrow.find((one) => one.includes("*")) ?? narrow[0];
  const granting = pattern === undefined ? [] : [["session", words.yesForSession(pattern)], ["always", words.yesAlways(pattern)]];
  return [
    { key: "y", label: words.yesOnce, decision: { approved: true }, kind: "yes" },
    { key: "n", label: words.no, decision: { approved: false }, kind: "no" },
    ...granting.map(([scope = "", label = ""], at): Choice => ({
      key: String(at + 2),
      label,
      decision: { approved: true, grant: { scope, pattern: pattern ?? "" } },
      kind: "more",
    })),
  ];
}

function textsIn(value: Json | undefined): string[] {
  const found: string[] = [];
  const waiting: (Json | undefined)[] = [value];
  while (waiting.length) {
    const here = waiting.pop();
    if (typeof here === "string") found.push(here);
    else if (Array.isArray(here)) waiting.push(...here);
    else if (here !== null && typeof here === "object") waiting.push(...Object.keys(here), ...Object.values(here));
  }
  return found;
}

/** Say whether what a tool shows has all of an argument in it: a diff has a sign before each line. */
function isShown(value: Json | undefined, display: ToolDisplay): boolean {
  if (typeof value !== "string") return false;
  const lines = asText(display.content).split("\n");
  const shown = new Set([...lines, ...lines.map((line) => line.slice(1)), ...(display.title ?? "").split(", ")]);
  return value.replace(/\n$/, "").split("\n").every((line) => shown.has(line));
}

/** Return the arguments that are not in what the tool shows of the call. */
function argumentsLeft(written: Json | undefined, display: ToolDisplay | null | undefined): Json | undefined {
  if (!display?.content || written === null || typeof written !== "object" || Array.isArray(written)) return written;
  return Object.fromEntries(Object.entries(written).filter(([, value]) => !isShown(value, display)));
}

interface Props {
  approval: Approval;
  others: number;
  decide: (decision: JsonObject) => Promise<void>;
}

export function ApprovalCard({ approval, others, decide }: Props) {
  const { suspension } = approval;
  const { parameters } = suspension;
  const card = useRef<HTMLElement>(null);
  const [answered, setAnswered] = useState("");
  const [sent, setSent] = useState(false);
  const [seen, setSeen] = useState(false); // nobody says yes to what was not on the screen
  const question = useRef<HTMLDivElement>(null);
  const look = (): void => {
    const box = question.current;
    if (box && box.scrollTop + box.clientHeight >= box.scrollHeight - 2) setSeen(true);
  };
  const choices = choicesOf(approval);
  const wantsYesOrNo = (suspension.action ?? "approve") === "approve";
  const written = wantsYesOrNo ? (parameters.arguments ?? callOf(suspension.call, "").arguments) : parameters.arguments;
  const give = (decision: JsonObject): void => {
    if (sent) return;
    setSent(true);
    void decide(decision).finally(() => setSent(false));
  };

  const isOffered = (choice: Choice): boolean => !sent && (seen || choice.kind === "no");

  useEffect(() => {
    card.current?.focus();
    look();
    addEventListener("resize", look);
    return () => removeEventListener("resize", look);
  }, []);
  const press = (event: KeyboardEvent): void => {
    if (event.target !== card.current || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const chosen = choices.find((choice) => choice.key === event.key.toLowerCase());
    if (chosen === undefined || !isOffered(chosen)) return;
    event.preventDefault();
    give(chosen.decision);
  };
  const answer = (): void => {
    if (wantsYesOrNo) give({ approved: false, reason: answered });
    else give({ value: valueOf(answered, suspension.response_schema?.type) });
  };

  return (
    <section class="approval" ref={card} tabIndex={-1} aria-label={words.agentAsks} onKeyDown={press}>
      <div class="question" ref={question} onScroll={look} tabIndex={0} role="group" aria-label={words.whatIsAsked}>
        <h2>{parameters.suggestions ? oneLine(parameters.preview || parameters.tool || suspension.tool) : visible(suspension.message)}</h2>
        {parameters.display?.content ? <DisplayOfTool display={parameters.display} /> : null}
        <Arguments value={argumentsLeft(written, parameters.display)} />
        {textsIn(written).some(hides) && (
          <p class="warning">{words.hiddenCharacters}</p>
        )}
        {parameters.reason && <p class="quiet">{words.askedBecause(visible(parameters.reason))}</p>}
        {parameters.tool && parameters.tool !== suspension.tool && <p class="quiet">{words.calledBy(parameters.tool, suspension.tool)}</p>}
      </div>
      {!seen && <p class="quiet" role="status">{words.readToEnd}</p>}
      <div class="choices">
        {choices.map((choice) => (
          <button key={choice.key} type="button" class={choice.kind === "yes" ? "primary" : ""} disabled={!isOffered(choice)} onClick={() => give(choice.decision)}>
            <kbd>{choice.key}</kbd> {visible(choice.label)}
          </button>
        ))}
      </div>
      {(wantsYesOrNo || !choices.length) && (
        <form
          class="reason"
          onSubmit={(event) => {
            event.preventDefault();
            answer();
          }}
        >
          <input value={answered} aria-label={wantsYesOrNo ? words.noInstead : words.yourAnswer} placeholder={wantsYesOrNo ? words.noInstead : words.yourAnswer} onInput={(event) => setAnswered(event.currentTarget.value)} />
          <button type="submit" disabled={sent || !answered.trim()}>{words.giveAnswer}</button>
        </form>
      )}
      {!wantsYesOrNo && <button type="button" disabled={sent} onClick={() => give({ approved: false })}>{words.noAnswer}</button>}
      {others > 0 && <p class="quiet">{words.moreToDecide(others)}</p>}
    </section>
  );
}

function valueOf(text: string, type = "string"): Json {
  if (type === "string") return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text; // the server says what it wants instead
  }
}
