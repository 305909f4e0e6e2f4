"""Where things are kept: configuration, sessions, secrets, logs, caches, each in its own place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import platformdirs

APPLICATION = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """The folders of one user on one machine.

    Attributes:
        config: What users write by hand.
        data: What must not be lost: sessions, attachments, secrets.
        state: What may be lost: logs, the history of what was typed.
        cache: What can be made again at any time.
    """

    config: Path
    data: Path
    state: Path
    cache: Path

    @classmethod
    def of_this_user(cls) -> Paths:
        """Return the usual places; the XDG variables of the environment move them."""
        places = platformdirs.PlatformDirs(APPLICATION, appauthor=False)
        return cls(
            config=Path(places.user_config_dir),
            data=Path(places.user_data_dir),
            state=Path(places.user_state_dir),
            cache=Path(places.user_cache_dir),
        )

    @property
    def config_file(self) -> Path:
        """The configuration that users edit."""
        return self.config / "config.toml"

    @property
    def keyboard(self) -> Path:
        """The user's own key bindings of the chat."""
        return self.config / "keys.toml"

    @property
    def windows(self) -> Path:
        """The context windows of models, as their providers named them."""
        return self.cache / "windows.json"

    @property
    def models(self) -> Path:
        """Which models were taken last, and which are favourites."""
        return self.state / "models.json"

    @property
    def database(self) -> Path:
        """Where sessions are."""
        return self.data / "app.db"

    @property
    def assets(self) -> Path:
        """Where attachments are."""
        return self.data / "assets"

    @property
    def secrets(self) -> Path:
        """Where keys are, if there is no keyring."""
        return self.data / "secrets.json"

    @property
    def log(self) -> Path:
        """Where log files are."""
        return self.state / "log"

    @property
    def typed(self) -> Path:
        """What was typed before, for the Up key."""
        return self.state / "history"

    def project_config(self, folder: Path) -> Path:
        """Return the configuration of a project."""
        return folder / ".agent" / "config.toml"


def log_folder() -> Path:
    """Return where this user's log files are."""
    return Paths.of_this_user().log
