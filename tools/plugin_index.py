"""Write the index of our own plugins, which `agent plugins search` reads, from their pyproject.toml files."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
INDEX = ROOT / "packages/agent-terminal-app/src/agent_terminal_app/plugin_index.json"
GROUPS = "agent_platform."


def main() -> None:
    """Write the file; whether the plugins are in a registry stays as it is."""
    registry = json.loads(INDEX.read_text(encoding="utf-8"))["registry"]
    plugins = []
    for file in sorted(ROOT.glob("plugins/*/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        for group, names in project["entry-points"].items():
            plugins += [
                {
                    "name": name,
                    "kind": group.removeprefix(GROUPS).removesuffix("s"),
                    "summary": project["description"],
                    "distribution": project["name"],
                    "version": "@VERSION@",  # filled in by the program, which has the same
                    "author": "Keelwork",
                    "license": project["license"],
                }
                for name in names
                if group.startswith(GROUPS)
            ]
    index = {"format": 1, "name": "Keelwork's own plugins", "registry": registry, "plugins": plugins}
    INDEX.write_text(json.dumps(index, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
