"""The settings of commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_plugin_kit.sandbox import SANDBOX_SCHEMA, SandboxSettings
from agent_plugin_kit.settings import read_settings, setting, settings_schema

if TYPE_CHECKING:
    from collections.abc import Mapping


def _paths(texts: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(map(Path, texts))


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    for name, text in given.items():
        if "=" in name or "\0" in name + text:
            raise ValueError(f"has {name!r:.80}, which no variable can be: rename or remove it")
    return dict(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one configuration."""

    roots: tuple[Path, ...] = setting(
        (),
        "Folders to run commands in if the session names none; the first is the default.",
        reads=tuple[str, ...],
        convert=_paths,
        shown_default=None,
    )
    bash: str = setting("bash", "The bash that runs commands.", key="shell_bash")
    timeout: float = setting(120, "Seconds that a command has by default.", key="shell_timeout", above=0)
    max_timeout: float = setting(
        3600, "Seconds that a call may ask for at most.", key="shell_max_timeout", above=0
    )
    grace: float = setting(
        2, "Seconds between asking a command to end and ending it by force.", key="shell_grace", above=0
    )
    output_bytes: int = setting(
        30_000, "Bytes of output that the model reads.", key="shell_output_bytes", at_least=1
    )
    stream_bytes: int = setting(
        10_000_000,
        "Bytes of output that are shown while a command runs.",
        key="shell_stream_bytes",
        at_least=1,
    )
    keep_bytes: int = setting(
        50_000_000,
        "Bytes of output of one command that are kept, in a temporary file.",
        key="shell_keep_bytes",
        at_least=1,
    )
    max_jobs: int = setting(
        16,
        "Commands of one session that may run in the background at once.",
        key="shell_max_jobs",
        at_least=1,
    )
    env: Mapping[str, str] = setting(
        {},
        "Variables that commands have in any case.",
        key="shell_env",
        convert=_environment,
        shown_default=None,
    )
    env_allow: tuple[str, ...] = setting(
        (),
        "Patterns of variables that commands have although they look like secrets.",
        key="shell_env_allow",
        shown_default=None,
    )
    env_deny: tuple[str, ...] = setting(
        (), "Patterns of variables that commands do not have.", key="shell_env_deny", shown_default=None
    )
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Settings:
        """Return the settings of a configuration.

        Raises:
            ConfigError: If one cannot be used; `field` names it.
        """
        return read_settings(cls, config, sandbox=SandboxSettings.read(config))


SCHEMA = settings_schema(Settings) | SANDBOX_SCHEMA
