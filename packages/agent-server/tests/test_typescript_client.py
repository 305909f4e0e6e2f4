"""The TypeScript client: made from the description of the API, and used by Node against a real server."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_core.testing import Reply
from agent_server.application import describe_api
from agent_server.testing import TOKEN

if TYPE_CHECKING:
    from agent_server.testing import Serving

ROOT = Path(__file__).parents[3]
CLIENT = ROOT / "clients" / "typescript" / "src"
ESBUILD = ROOT / "packages" / "agent-server" / "web" / "node_modules" / ".bin" / "esbuild"
SCRIPT = """
import { Client, Problem, framesOf } from "%s";

const [url, token] = process.argv.slice(2);
let connections = 0;
const fragile: typeof fetch = async (input, init) => {
  const answer = await fetch(input, init);
  const streams = String(answer.headers.get("content-type")).startsWith("text/event-stream");
  if (!streams || answer.body === null || (connections += 1) > 4) return answer;
  let pieces = 0; // the first connections break after a few pieces
  const cut = new TransformStream({
    transform(piece, controller) {
      if ((pieces += 1) > 3) controller.error(new Error("cut"));
      else controller.enqueue(piece);
    },
  });
  return new Response(answer.body.pipeThrough(cut), { status: answer.status, headers: answer.headers });
};
const client = new Client({ url, token, fetch: fragile });
const session = await client.createSession({ title: "From Node" });
let text = "";
let last = "";
for await (const event of client.run(session.id, { text: "count" })) {
  if (event.type === "text") text += event.data["text"];
  last = event.type;
}
const messages = await client.readMessages(session.id, { limit: 10 });
const titles = (await client.listSessions({ query: "Node" })).items.map((one) => one.title);
let refused: unknown;
try {
  await client.readSession("unknown");
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  refused = { status: error.status, type: error.type, id: error.requestId.length };
}
const cut = new Response("id: 1\\r\\ndata: a\\r\\ndata: b\\r\\n\\r\\nda");
const frames = [];
for await (const frame of framesOf(cut)) frames.push(frame);
await client.deleteSession(session.id);
const roles = messages.items.map((message) => message.role);
console.log(JSON.stringify({ text, last, connections, titles, refused, frames, roles }));
"""


def test_the_client_has_what_the_api_has() -> None:
    described: dict[str, Any] = json.loads(json.dumps(describe_api().openapi(), sort_keys=True))
    wanted = runpy.run_path(str(ROOT / "tools" / "typescript_client.py"))["generated"](described)

    assert (CLIENT / "operations.ts").read_text() == wanted, "run `make client`"


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node here")
@pytest.mark.skipif(not ESBUILD.exists(), reason="the page is not built (make page)")
def test_node_talks_to_a_server_and_survives_broken_connections(serve_it: Serving, tmp_path: Path) -> None:
    words = [f"w{number} " for number in range(30)]

    served = serve_it([Reply(chunks=words, delay=0.02)])
    script, bundle = tmp_path / "script.ts", tmp_path / "script.mjs"
    script.write_text(SCRIPT % (CLIENT / "index.ts"))
    subprocess.run(
        [ESBUILD, str(script), "--bundle", "--format=esm", "--platform=node", f"--outfile={bundle}"],
        check=True,
        capture_output=True,
    )
    done = subprocess.run(
        ["node", str(bundle), served.url, TOKEN], capture_output=True, text=True, check=False, timeout=120
    )

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["text"] == "".join(words)
    assert told["last"] == "final"
    assert told["connections"] > 1
    assert told["titles"] == ["From Node"]
    assert told["refused"] == {"status": 404, "type": "urn:keelwork:session-not-found", "id": 32}
    assert told["frames"] == [{"id": "1", "data": "a\nb"}]
    assert told["roles"] == ["user", "assistant"]
