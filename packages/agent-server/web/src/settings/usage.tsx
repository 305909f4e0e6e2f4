import { useState } from "preact/hooks";
import { as, client } from "../api";
import { Bars, Columns, type Figure } from "../chart";
import { useLoaded } from "../loaded";
import { language, words } from "../words";

interface Row {
  day: string;
  agent: string | null;
  model: string;
  requests: number;
  input_tokens: number;
  output_tokens: number;
  cost: number;
}

const DAYS = [7, 30, 90];

export function UsageCharts() {
  const [days, setDays] = useState(30);
  const [isCost, setIsCost] = useState(false);
  const { data, failure } = useLoaded(() => as<{ items: Row[]; complete: boolean }>(client.readAllUsage({ days })), days);
  if (failure) return <p class="failure" role="alert">{failure}</p>;
  const rows = data?.items ?? [];
  const valueOf = (row: Row): number => (isCost ? row.cost : row.input_tokens + row.output_tokens);
  const format = (value: number): string => (isCost ? value.toLocaleString(language, { style: "currency", currency: "USD", maximumFractionDigits: 4 }) : words.tokens(value.toLocaleString(language)));
  const total = rows.reduce((sum, row) => sum + valueOf(row), 0);
  return (
    <>
      <p class="buttons">
        <select aria-label={words.period} value={days} onChange={(event) => setDays(Number(event.currentTarget.value))}>
          {DAYS.map((number) => <option key={number} value={number}>{words.lastDays(number)}</option>)}
        </select>
        <select aria-label={words.unit} value={isCost ? "cost" : "tokens"} onChange={(event) => setIsCost(event.currentTarget.value === "cost")}>
          <option value="tokens">{words.tokenCount}</option>
          <option value="cost">{words.cost}</option>
        </select>
        <strong class="total">{format(total)}</strong>
      </p>
      {data && !rows.length && <p class="quiet">{words.noUsage}</p>}
      {data && !data.complete && <p class="quiet">{words.usageIncomplete}</p>}
      {rows.length > 0 && (
        <>
          <h3>{words.byDay}</h3>
          <Columns figures={byDay(rows, days, valueOf)} label={words.byDay} format={format} />
          <h3>{words.byModel}</h3>
          <Bars figures={grouped(rows, (row) => row.model, valueOf)} label={words.byModel} format={format} />
          <h3>{words.byAgent}</h3>
          <Bars figures={grouped(rows, (row) => row.agent ?? "–", valueOf)} label={words.byAgent} format={format} />
        </>
      )}
    </>
  );
}

function grouped(rows: Row[], nameOf: (row: Row) => string, valueOf: (row: Row) => number): Figure[] {
  const sums = new Map<string, number>();
  for (const row of rows) sums.set(nameOf(row), (sums.get(nameOf(row)) ?? 0) + valueOf(row));
  return [...sums].map(([name, value]) => ({ name, value }));
}

/** Return a figure for every day, also for those without any. */
function byDay(rows: Row[], days: number, valueOf: (row: Row) => number): Figure[] {
  const sums = new Map(grouped(rows, (row) => row.day, valueOf).map(({ name, value }) => [name, value]));
  return Array.from({ length: days }, (_, at) => {
    const name = new Date(Date.now() - (days - 1 - at) * 86_400_000).toISOString().slice(0, 10);
    return { name, value: sums.get(name) ?? 0 };
  });
}
