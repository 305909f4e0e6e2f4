"""What tools and features share: settings, clean text, secrets, files that are opened safely.

The characters that `clean` takes out are listed in `agent_core.clean_text`: the core cleans displays itself.
"""

from agent_core.clean_text import clean, escape, hides, one_line, reveal
from agent_plugin_kit.safe_files import (
    NotOpened,
    Outside,
    make_private_folder,
    open_file,
    open_folder,
    read_file,
    steps_inside,
    why_not_private,
)
from agent_plugin_kit.secrets import (
    is_secret_name,
    is_secret_value,
    looks_secret,
    mask_secrets,
    secret_values,
)
from agent_plugin_kit.settings import read_settings, setting, settings_schema

__all__ = [
    "NotOpened",
    "Outside",
    "clean",
    "escape",
    "hides",
    "is_secret_name",
    "is_secret_value",
    "looks_secret",
    "make_private_folder",
    "mask_secrets",
    "one_line",
    "open_file",
    "open_folder",
    "read_file",
    "read_settings",
    "reveal",
    "secret_values",
    "setting",
    "settings_schema",
    "steps_inside",
    "why_not_private",
]
