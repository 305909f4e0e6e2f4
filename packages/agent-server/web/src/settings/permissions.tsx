import { useState } from "preact/hooks";
import { client, list, wordsOf } from "../api";
import { useLoaded } from "../loaded";
import { visible } from "../text";
import { words } from "../words";

interface Grant {
  id: string;
  pattern: string;
  effect: "allow" | "deny";
  scope: "session" | "project" | "always";
  key: string;
}

/** What was granted or refused for longer than one call; a grant can be taken back, and that be undone. */
export function Permissions() {
  const { data, failure, reload } = useLoaded(() => list<Grant>(client.listGrants()));
  const [problem, setProblem] = useState("");
  const [revoked, setRevoked] = useState<Grant>();
  const attempt = (work: Promise<unknown>, then: () => void = () => undefined): void => {
    setProblem("");
    work.then(() => {
      then();
      reload();
    }).catch((error: unknown) => setProblem(wordsOf(error)));
  };
  const give = ({ pattern, effect, scope, key }: Omit<Grant, "id">): Promise<unknown> =>
    client.grant({ pattern, effect, scope, session_id: scope === "session" ? key : null, project: scope === "project" ? key : null });
  return (
    <>
      <form
        class="inline"
        onSubmit={(event) => {
          event.preventDefault();
          const form = event.currentTarget;
          const data = new FormData(form);
          const effect = data.get("effect") === "deny" ? "deny" : "allow";
          attempt(give({ pattern: String(data.get("pattern")), effect, scope: "always", key: "" }), () => form.reset());
        }}
      >
        <select name="effect" aria-label={words.effect}>
          <option value="allow">{words.allow}</option>
          <option value="deny">{words.deny}</option>
        </select>
        <input name="pattern" required aria-label={words.pattern} placeholder="shell(git status*)" />
        <button type="submit" class="primary">{words.addRule}</button>
      </form>
      {(failure || problem) && <p class="failure" role="alert">{failure || problem}</p>}
      {revoked && (
        <p role="status">
          {words.revoked(revoked.pattern)}{" "}
          <button type="button" onClick={() => attempt(give(revoked), () => setRevoked(undefined))}>{words.undo}</button>
        </p>
      )}
      {data?.length === 0 && <p class="quiet">{words.noGrants}</p>}
      <ul class="things">
        {data?.map((one) => (
          <li key={one.id} class="line">
            <span class={one.effect === "allow" ? "badge good" : "badge bad"}>{one.effect === "allow" ? words.allow : words.deny}</span>
            <code>{visible(one.pattern)}</code>
            <span class="quiet">{scopeOf(one)}</span>
            <button type="button" class="danger" onClick={() => attempt(client.revoke(one.id), () => setRevoked(one))}>{words.revoke}</button>
          </li>
        ))}
      </ul>
    </>
  );
}

function scopeOf({ scope, key }: Grant): string {
  if (scope === "always") return words.scopeAlways;
  return scope === "session" ? words.scopeSession : words.scopeProject(key);
}
