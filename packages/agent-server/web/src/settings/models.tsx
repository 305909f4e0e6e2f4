import { useState } from "preact/hooks";
import { client, list, wordsOf } from "../api";
import { useLoaded } from "../loaded";
import type { SectionProps } from "../settings_view";
import { language, words } from "../words";
import { Fact } from "./agents";

interface Model {
  id: string;
  provider: string;
  model: string;
  context_window: number | null;
  input_price: number | null;
  output_price: number | null;
  agents: string[];
}

export function Models({ connect }: SectionProps) {
  const { data, failure } = useLoaded(() => list<Model>(client.listModels()));
  if (failure) return <p class="failure" role="alert">{failure}</p>;
  return (
    <>
      <p><button type="button" class="primary" onClick={connect}>{words.connectModel}</button></p>
      <ul class="things">{data?.map((model) => <ModelCard key={model.id} model={model} />)}</ul>
    </>
  );
}

function ModelCard({ model }: { model: Model }) {
  const [state, setState] = useState<"" | "testing" | "works">("");
  const [failure, setFailure] = useState("");
  const test = async (): Promise<void> => {
    setState("testing");
    setFailure("");
    try {
      await client.testModel({ model: model.id });
      setState("works");
    } catch (error) {
      setState("");
      setFailure(wordsOf(error));
    }
  };
  const price = model.input_price === null || model.output_price === null ? "" : words.pricePerMillion(money(model.input_price), money(model.output_price));
  return (
    <li>
      <h3>{model.id}</h3>
      <dl class="facts">
        <Fact name={words.provider} value={model.provider} />
        <Fact name={words.contextWindow} value={model.context_window === null ? "" : words.tokens(model.context_window.toLocaleString(language))} />
        <Fact name={words.price} value={price} />
        <Fact name={words.usedBy} value={model.agents.join(", ")} />
      </dl>
      <p class="buttons">
        <button type="button" disabled={state === "testing"} onClick={() => void test()}>{words.test}</button>
        {state === "testing" && <span class="quiet" role="status">{words.testing}</span>}
        {state === "works" && <span class="good" role="status">{words.works}</span>}
      </p>
      {failure && <p class="failure" role="alert">{failure}</p>}
    </li>
  );
}

function money(dollars: number): string {
  return dollars.toLocaleString(language, { style: "currency", currency: "USD", maximumSignificantDigits: 3 });
}
