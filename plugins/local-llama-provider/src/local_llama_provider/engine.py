"""The model in this process: llama.cpp, loaded once and shared."""

from __future__ import annotations

import secrets
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_provider_kit import JsonObject

_END = object()


class EngineSettings(NamedTuple):
    """What an engine is loaded with."""

    path: Path
    context_size: int
    threads: int


class Engine:
    """A loaded model that answers Chat Completions requests."""

    def __init__(self, settings: EngineSettings) -> None:
        import xllamacpp  # type: ignore[import-untyped]  # it ships no types

        params = xllamacpp.CommonParams()
        params.model.path = str(settings.path)
        params.n_ctx = settings.context_size
        params.n_parallel = 1
        params.cpuparams.n_threads = settings.threads
        params.verbosity = 0
        # The engine listens on a port of its own choice as well; nobody else should use it.
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.api_keys = [secrets.token_hex(16)]
        self._server = xllamacpp.Server(params)

    def stream(self, body: JsonObject, stopped: threading.Event) -> Iterator[JsonObject]:
        """Yield the chunks of an answer; setting *stopped* ends it at the next token."""
        chunks: SimpleQueue[Any] = SimpleQueue()

        def take(chunk: JsonObject) -> bool:
            chunks.put(chunk)
            return stopped.is_set()

        def work() -> None:
            try:
                self._server.handle_chat_completions({**body, "stream": True}, take)
                chunks.put(_END)
            except Exception as error:  # raised again by whoever reads
                chunks.put(error)

        threading.Thread(target=work, name="local-llama", daemon=True).start()
        try:
            while (found := chunks.get()) is not _END:
                if isinstance(found, Exception):
                    raise found
                yield found
        finally:
            stopped.set()


class Engines:
    """The engines of this process; each model is loaded once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: dict[EngineSettings, Engine] = {}

    def is_loaded(self, settings: EngineSettings) -> bool:
        """Say whether using it would not have to wait."""
        return settings in self._loaded

    def get(self, settings: EngineSettings) -> Engine:
        """Return the engine, loading it at first use."""
        with self._lock:
            if settings not in self._loaded:
                self._loaded[settings] = Engine(settings)
            return self._loaded[settings]


ENGINES = Engines()
