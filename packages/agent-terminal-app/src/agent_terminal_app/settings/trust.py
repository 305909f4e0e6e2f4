"""Which projects may change settings, and what a setting can do that its author should be trusted with.

A project comes from somebody else, and its settings can make tools run. So its file is used only after the
user trusted it, and only while its content stays the same: the list keeps its hash. A user who does not
want to be asked about a folder says so once, and its file is ignored from then on.

The table of settings follows the schema: a setting is harmless if the table says so, and everything else is
marked. So a new setting, and every setting of an unknown plugin, is marked until somebody has judged it. A
star stands for a name that users choose.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent_core.clean_text import one_line
from agent_plugin_kit.safe_files import why_not_private
from agent_plugin_kit.trust import project_top
from agent_terminal_app.errors import CommandError, Exit
from agent_terminal_app.settings.files import ConfigFile, is_there, parse, read_bytes, replace_file
from agent_terminal_app.settings.keypaths import leaves, spell
from agent_terminal_app.settings.rules import checked, find_fault
from agent_terminal_app.settings.secrets import for_showing, is_secret_name

if TYPE_CHECKING:
    from pathlib import Path

    from agent_terminal_app.paths import Paths
    from agent_terminal_app.settings.keypaths import Way

_NEVER = "never"  # in place of a hash
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md")
SKILLS = (".agent/skills", ".agents/skills", ".claude/skills")
COMMANDS = (".agent/commands", ".claude/commands")
MEMORIES = ".agent/memory"
"""What of a project reaches the model, if it is trusted."""


def is_trusted(paths: Paths, file: ConfigFile) -> bool:
    """Say whether the user trusted the file with this very content."""
    return _noted(paths, file.path) == file.digest


def was_trusted(paths: Paths, file: ConfigFile) -> bool:
    """Say whether the user trusted the file before, perhaps with another content."""
    return _noted(paths, file.path) not in (None, _NEVER)


def is_left_alone(paths: Paths, file: ConfigFile) -> bool:
    """Say whether the user never wants to be asked about the file."""
    return _noted(paths, file.path) == _NEVER


def read_project(paths: Paths, folder: Path) -> ConfigFile:
    """Return the settings of a project, trusted or not, if they could be used.

    Raises:
        CommandError: If the project has none.
        SettingsError: If they cannot be used.
    """
    path = paths.project_config(folder)
    if not is_there(path):
        raise CommandError(f"there is no {path} to trust", code=Exit.USAGE, hint="go to the project's folder")
    return checked(parse(path, read_bytes(path)), find_fault)


def trust_project(paths: Paths, folder: Path) -> ConfigFile:
    """Trust the settings of a project as they are now, and return them.

    Raises:
        CommandError: If the project has none.
        SettingsError: If they cannot be used.
    """
    file = read_project(paths, folder)
    trust_file(paths, file)
    return file


def trust_file(paths: Paths, file: ConfigFile) -> None:
    """Trust a file with the content that was read, whatever it says by now.

    Raises:
        CommandError: If that cannot be written down.
    """
    _note(paths, file.path, file.digest)


def leave_alone(paths: Paths, file: ConfigFile) -> None:
    """Never use a file and never ask about it, until the user trusts it.

    Raises:
        CommandError: If that cannot be written down.
    """
    _note(paths, file.path, _NEVER)


_FOLDER = "folder"  # in place of a hash: all that is in it may speak to the model


def trust_folder(paths: Paths, folder: Path) -> None:
    """Let the instructions, skills and memories of a project reach the model.

    Raises:
        CommandError: If that cannot be written down.
    """
    _note(paths, project_top(folder) / "", _FOLDER)


def leave_folder_alone(paths: Paths, folder: Path) -> None:
    """Never use the instructions of a project and never ask about them, until the user trusts it."""
    _note(paths, project_top(folder) / "", f"{_NEVER} {_FOLDER}")


def trusted_folders(paths: Paths) -> list[str]:
    """Return the projects whose instructions, skills and memories may reach the model."""
    return sorted(folder for folder, word in _notes(paths).items() if word == _FOLDER)


def undecided_instructions(paths: Paths, folder: Path) -> list[str]:
    """Return what a project would say to the model, with the sizes; none if the user decided about it."""
    top = project_top(folder)
    if str(top.resolve()) in _notes(paths):
        return []
    folders = [one for one in (folder, *folder.parents) if one.is_relative_to(top)]
    files = [one / name for one in folders for name in INSTRUCTIONS]
    found = [f"{file} ({file.stat().st_size:,} bytes)" for file in files if file.is_file()]
    for place in dict.fromkeys(one / name for one in (folder, top) for name in COMMANDS):
        written = sorted(place.rglob("*.md")) if place.is_dir() else []
        names = [":".join(one.relative_to(place).with_suffix("").parts) for one in written]
        found += [f"{place} (commands: {', '.join(names)[:200]})"] if names else []
    for place in (folder / name for name in SKILLS):
        skills = sorted(one.name for one in place.iterdir() if one.is_dir()) if place.is_dir() else []
        found += [f"{place} ({_counted(skills, 'skill', 'skills')})"] if skills else []
    memories = sorted(one.stem for one in (top / MEMORIES).glob("*.md"))
    found += [f"{top / MEMORIES} ({_counted(memories, 'memory', 'memories')})"] if memories else []
    return [one_line(one) for one in found]  # the project chose the names: they may not add lines


def _counted(names: list[str], one: str, several: str) -> str:
    return f"{len(names)} {one if len(names) == 1 else several}: {', '.join(names)[:200]}"


def trust_list(paths: Paths) -> Path:
    """Return the file with the user's decisions about projects."""
    return paths.state / "trusted.json"


def _noted(paths: Paths, file: Path) -> str | None:
    return _notes(paths).get(str(file.resolve()))


def _notes(paths: Paths) -> dict[str, str]:
    """Return the decisions about files; a list that cannot be read, or that others may write, trusts none."""
    path = trust_list(paths)
    if why_not_private(path) is not None or why_not_private(path.parent) is not None:
        return {}
    try:
        found = json.loads(trust_list(paths).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _note(paths: Paths, file: Path, word: str) -> None:
    path = trust_list(paths)
    problem = why_not_private(path.parent)
    if problem is not None:
        raise CommandError(f"{path.parent} {problem}: its content cannot be trusted")
    noted = {**_notes(paths), str(file.resolve()): word}
    try:
        replace_file(path, json.dumps(noted, indent=2) + "\n", mode=0o600, folder_mode=0o700)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error


Judge = Callable[[Any], str]

UNKNOWN = "may change which programs run, which files are read and which data is sent"
"""The mark of a setting that this table does not know."""
_ALLOWS, _ALLOWS_ALL = "lets these run without asking you", "lets everything run without asking you"
_SENDS = "sends your messages and keys to this address"
_ANSWERS = "sends your messages to this model"
_TOOLS = "gives models these tools"
_SPEAKS = "gives the model instructions in your name"


def danger(way: Way, value: Any) -> str:
    """Say what a setting can do that its author should be trusted with; empty if that is little."""
    names = tuple(step.lower() for step in way if isinstance(step, str))
    for place, judge in PLACES.items():
        if _is_at(names, place):
            return judge(value)
    return _of_a_plugin(names) if _is_free(names) else UNKNOWN


def _is_at(names: tuple[str, ...], place: tuple[str, ...]) -> bool:
    return len(names) == len(place) and all(
        step in ("*", name) for name, step in zip(names, place, strict=True)
    )


def _is_free(names: tuple[str, ...]) -> bool:
    """Say whether a setting is one that plugins and providers understand, not this program."""
    match names:
        case ("plugins", _, _, *_) | ("models", _, "config", _, *_) | ("agents", _, "sections", _, _, *_):
            return True
        case ("agents", _, "endpoint", *_):
            return True
    return False


def _of_a_plugin(names: tuple[str, ...]) -> str:
    if names[-1] in HARMLESS_OF_PLUGINS:
        return ""
    return next((danger for danger, applies in _BY_NAME.items() if applies(names)), UNKNOWN)


def _harmless(_value: Any) -> str:
    return ""


def _always(danger: str) -> Judge:
    return lambda _value: danger


def _if_any(danger: str) -> Judge:
    return lambda value: danger if value else ""


def _default(value: Any) -> str:
    return "" if value in ("ask", "deny") else _ALLOWS_ALL


def _confines(value: Any) -> str:
    return "" if value == "strict" else "changes what confines programs"


def _model(value: Any) -> str:
    return "" if value == "local" else _ANSWERS


_RULES: dict[str, Judge] = {
    "allow": _if_any(_ALLOWS),
    "default": _default,
    "ask": _harmless,
    "deny": _harmless,
    "always_ask": _harmless,
    "on_ask": _harmless,
}
_OF_AGENTS: dict[tuple[str, ...], Judge] = {
    ("model",): _model,
    ("system_prompt",): _always(_SPEAKS),
    ("description",): _always(_SPEAKS),
    ("max_rounds",): _harmless,
    ("plugin_ids",): _if_any(_TOOLS),
    ("more_plugins",): _if_any(_TOOLS),
    ("delegates",): _if_any("lets the agent hand work to these"),
    ("handoffs",): _if_any("lets these take over the conversation"),
    ("allowed_tools",): _always(_TOOLS),
    ("excluded_tools",): _harmless,  # they add up
    ("stop_conditions",): _always("changes when a run ends"),
    ("endpoint",): _always(_SENDS),
    **{("context_policy", name): _harmless for name in ("max_tokens", "reserve_tokens", "keep_recent")},
    **{("context_policy", name): _harmless for name in ("compact_at", "truncate", "prompt_cache")},
    ("sections", "retry", "fallback_models"): _if_any(_ANSWERS),
    **{("sections", "retry", name): _harmless for name in ("max_retries", "stream_retries", "base_delay")},
    **{("sections", "retry", name): _harmless for name in ("max_delay", "max_retry_after", "deadline")},
    ("sections", "tools", "concurrency"): _harmless,
    ("sections", "tools", "timeout"): _harmless,
    ("sections", "tools", "timeouts", "*"): _harmless,
    **{("sections", "permissions", name): judge for name, judge in _RULES.items()},
}
_OF_SANDBOX: dict[tuple[str, ...], Judge] = {
    (): _confines,
    ("mode",): _confines,
    ("auto",): _if_any("lets commands run in the sandbox without asking you"),
    ("write",): _if_any("lets programs write these folders"),
    ("show",): _if_any("shows programs these files"),
    ("hosts",): _if_any("lets programs reach these hosts"),
    **{(name,): _harmless for name in ("memory", "processes", "open_files", "file_size")},
}
_OF_MODELS: dict[str, Judge] = {
    "provider": _always("sends your messages to this provider"),
    "model": _always(_ANSWERS),
    "context_window": _harmless,
    "max_output_tokens": _harmless,
    "input_price": _harmless,
    "output_price": _harmless,
    "cached_input_price": _harmless,
}
PLACES: dict[tuple[str, ...], Judge] = {
    ("ui", "plain"): _harmless,
    ("ui", "theme"): _harmless,
    ("ui", "status_line"): _harmless,
    ("ui", "notify"): _harmless,
    ("model",): _model,
    ("default_agent",): _always("chooses the agent, and with it tools and rules"),
    ("plugin_ids",): _if_any(_TOOLS),
    ("more_plugins",): _if_any(_TOOLS),
    **{("permissions", name): judge for name, judge in _RULES.items()},
    **{("sandbox", *place): judge for place, judge in _OF_SANDBOX.items()},
    **{("agents", "*", "sandbox", *place): judge for place, judge in _OF_SANDBOX.items()},
    **{("agents", "*", *place): judge for place, judge in _OF_AGENTS.items()},
    **{("models", "*", name): judge for name, judge in _OF_MODELS.items()},
}
"""What becomes of each place of the schema; the settings of plugins are judged by their names."""

HARMLESS_OF_PLUGINS = frozenset(
    {
        "temperature", "top_p", "top_k", "seed", "stop", "stop_sequences", "max_tokens", "max_output_tokens",
        "max_completion_tokens", "presence_penalty", "frequency_penalty", "reasoning_effort", "verbosity",
        "connect_timeout", "first_byte_timeout", "idle_timeout", "content_timeout", "context_size",
        "threads", "compaction_trigger", "compaction_threshold", "compaction_keep",
    }
)  # fmt: skip
"""Settings of plugins and models that change how an answer is made and nothing else."""

_ADDRESSES = {"base_url", "url", "endpoint", "proxy"}
_CREDENTIALS = {"credentials_file", "profile"}
_GOES_ALONG = {"extra_headers", "headers", "extra_query"}
_HOOKS = {"before_tool", "after_edit", "on_stop"}
_RUNS = {"command", "commands", "args", "script", "shell", "shell_bash", "exec", *_HOOKS}
_ENVIRONMENT = {"env", "shell_env", "shell_env_allow", "shell_env_deny"}
_LOADS = {"model_path", "plugin_path", "path", "paths", "file", "files", "folder", "folders", "roots"}
_BY_NAME: dict[str, Callable[[tuple[str, ...]], bool]] = {
    "uses a key or a file of yours": lambda names: is_secret_name(names[-1]) or names[-1] in _CREDENTIALS,
    _SENDS: lambda names: names[-1] in _ADDRESSES,
    "runs a program": lambda names: not _RUNS.isdisjoint(names[2:]),
    "changes what programs get of your environment": lambda names: not _ENVIRONMENT.isdisjoint(names[2:]),
    "opens these files": lambda names: names[-1] in _LOADS,
    "goes along with every request": lambda names: not _GOES_ALONG.isdisjoint(names),
    "switches plugins on or off": lambda names: names[-1].endswith("_plugins"),
}
"""What can be said of a setting by its name alone; one that fits none of these is marked as unknown."""


# What a user is shown before trusting a file

LONGEST_VALUE = 200
"""How many characters of a value are shown."""
MOST_MARKED, MOST_PLAIN = 100, 30
"""How many lines of each kind are shown."""


def changes(file: ConfigFile) -> list[str]:
    """Return what a file would change, a line for each value; those to look at first have a mark."""
    pairs = zip(leaves(file.values), leaves(for_showing(file.values)), strict=True)
    found = [(way, shown, danger(way, value)) for (way, value), (_way, shown) in pairs]
    found.sort(key=lambda one: one[2] == UNKNOWN)  # what is known to be dangerous comes first
    marked = [f"  ! {_value_line(way, value)}  <- {why}" for way, value, why in found if why]
    plain = [f"    {_value_line(way, value)}" for way, value, why in found if not why]
    return [*_some(marked, MOST_MARKED, "  !"), *_some(plain, MOST_PLAIN)]


def _value_line(way: Way, value: Any) -> str:
    text = json.dumps(value, default=str)  # in ASCII: no letter can look like another
    short = text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… ({len(text)} characters)"
    return f"{spell(way)} = {short}"


def _some(lines: list[str], most: int, mark: str = "   ") -> list[str]:
    more = len(lines) - most
    return lines if more <= 0 else [*lines[:most], f"{mark} and {more} more, see the file"]
