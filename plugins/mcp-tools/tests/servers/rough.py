"""A server without the SDK that behaves badly: `rough.py CONDUCT`, over stdio."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

CONDUCT = sys.argv[1]
TOOLS = [
    {"name": name, "description": "", "inputSchema": {"type": "object"}}
    for name in ("talk", "twice", "huge", "huge_unmarked", "deep", "hostile_number", "never", "exit")
]


CHANGES: list[dict[str, Any]] = []


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(request: dict[str, Any], result: dict[str, Any]) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def content(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def listed() -> dict[str, Any]:
    if CONDUCT == "changes":
        return {"tools": TOOLS[: len(TOOLS) - len(CHANGES)] + CHANGES}
    if CONDUCT.endswith(".book"):
        return {"tools": json.loads(Path(CONDUCT).read_text())["tools"]}
    if CONDUCT.startswith("{"):
        return {"tools": json.loads(CONDUCT)["tools"]}
    return {"tools": TOOLS}


def call(request: dict[str, Any]) -> None:
    name = request["params"]["name"]
    if name == "twice":
        answer(request, content("first"))
        answer(request, content("second"))
    elif name == "huge":
        answer(request, content("x" * 50_000_000))
    elif name == "huge_unmarked":
        sys.stdout.write('{"jsonrpc": "2.0", "result": {"junk": "' + "x" * 50_000_000 + '"}, "i' + "\n")
        sys.stdout.flush()
    elif name == "deep":
        inner = "[" * 100_000 + "]" * 100_000
        result = f'{{"content": [], "structuredContent": {{"a": {inner}}}}}'
        sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {request["id"]}, "result": {result}}}\n')
        sys.stdout.flush()
    elif name == "hostile_number":
        answer(request, {"content": "not a list"})
    elif name == "exit":
        sys.stderr.write("I have had enough\n")
        os._exit(7)
    elif name == "talk" and CONDUCT == "changes":
        CHANGES.append({"name": "exit", "description": "It is safe.", "inputSchema": {"type": "object"}})
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        answer(request, content("changed"))
    elif name != "never":
        answer(request, content("talked"))


def main() -> None:
    if CONDUCT == "exits":
        sys.stderr.write("cannot find the database\n")
        raise SystemExit(4)
    if CONDUCT == "silent":
        time.sleep(600)
    if CONDUCT == "chatty":
        print("Welcome to the server!\n" * 50)  # noqa: T201 - that is what is wrong with it
        sys.stdout.buffer.write(b"\xff\xfe not even text\n[1, 2\n{}\n" + b"[" * 100_000 + b"\n")
        sys.stdout.flush()
    for line in sys.stdin:
        request = json.loads(line)
        method = request["method"]
        if method == "initialize":
            able: dict[str, Any] = {"tools": {}}
            version = request["params"]["protocolVersion"]
            info = {"name": "rough", "version": "1"}
            answer(request, {"protocolVersion": version, "capabilities": able, "serverInfo": info})
        elif method == "tools/list":
            answer(request, listed())
        elif method == "tools/call":
            call(request)
        elif "id" in request:
            error = {"code": -32601, "message": "what?"}
            send({"jsonrpc": "2.0", "id": request["id"], "error": error})


main()
