import { useRef, useState } from "preact/hooks";
import { client, list, wordsOf } from "../api";
import { useLoaded } from "../loaded";
import { words } from "../words";

interface Provider {
  id: string;
  key: string | null;
}

export function Providers() {
  const { data, failure, reload } = useLoaded(() => list<Provider>(client.listProviders()));
  if (failure) return <p class="failure" role="alert">{failure}</p>;
  return <ul class="things">{data?.map((one) => <ProviderCard key={one.id} provider={one} reload={reload} />)}</ul>;
}

/** A key can be written and forgotten, never read; the provider is asked whether it takes it. */
function ProviderCard({ provider, reload }: { provider: Provider; reload: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState("");
  const attempt = async (work: Promise<unknown>): Promise<void> => {
    setBusy(true);
    setFailure("");
    try {
      await work;
      if (field.current) field.current.value = "";
      reload();
    } catch (error) {
      setFailure(wordsOf(error));
    } finally {
      setBusy(false);
    }
  };
  const save = (test: boolean): void => void attempt(client.setKey(provider.id, { key: field.current?.value ?? "", test }));
  return (
    <li>
      <h3>{provider.id}</h3>
      <p class="quiet">{provider.key === null ? words.noKey : words.keyIn(provider.key)}</p>
      <form
        class="inline"
        onSubmit={(event) => {
          event.preventDefault();
          save(true);
        }}
      >
        <input ref={field} type="password" required autocomplete="off" aria-label={words.keyOf(provider.id)} placeholder={words.newKey} />
        <button type="submit" class="primary" disabled={busy}>{words.testAndSave}</button>
        {provider.key !== null && <button type="button" class="danger" disabled={busy} onClick={() => void attempt(client.removeKey(provider.id))}>{words.forget}</button>}
      </form>
      {busy && <p class="quiet" role="status">{words.testing}</p>}
      {failure && (
        <p class="failure" role="alert">
          {failure} <button type="button" onClick={() => save(false)}>{words.saveAnyway}</button>
        </p>
      )}
    </li>
  );
}
