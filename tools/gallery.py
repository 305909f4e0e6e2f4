"""Write docs/gallery/index.md from the programs in examples/, so that the page shows what the tests run."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PROGRAMS = {
    "fastapi_sse.py": "A web service with FastAPI, and events as they happen",
    "notebook.py": "A notebook",
    "coding_agent.py": "A coding agent",
    "research.py": "A research agent with delegates",
    "typed_extraction.py": "Typed extraction",
    "mcp_tools_agent.py": "Tools of an MCP server",
    "overnight.py": "A run that waits overnight for an approval",
    "replay.py": "Replay in tests",
    "tracing.py": "Traces",
    "custom_provider.py": "A provider of your own",
    "components/textual_chat.py": "A component for Textual",
    "components/streamlit_chat.py": "A component for Streamlit",
    "components/gradio_chat.py": "A component for Gradio",
}
_HEAD = """# Gallery

Complete programs, each under 80 lines, to copy and change. They are the files in `examples/`, and the tests
run every one of them with a scripted model. `MODEL` in the environment chooses a real one, for example
`MODEL=anthropic:claude-sonnet-5`; without it, the embedded model answers. In the components for Textual,
Streamlit and Gradio, which have ten lines of code each, the model is the argument of `Agent`.
"""


def main() -> None:
    """Write the page."""
    parts = [_HEAD]
    for name, title in PROGRAMS.items():
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        docstring = ast.get_docstring(ast.parse(text)) or ""
        about = docstring.partition("\n")[0]
        parts.append(
            f'## {title}\n\n{about + chr(10) + chr(10) if about else ""}```py title="{name}"\n{text}```\n'
        )
    page = ROOT / "docs" / "gallery" / "index.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
