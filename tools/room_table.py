"""Table of packages, which the build adds to docs/contributing.md, from the import contract."""

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
START, END = "<!-- rooms -->", "<!-- /rooms -->"


def rooms() -> list[str]:
    """Return the rooms of the package, those that others import first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers: list[str] = next(c["layers"] for c in contracts if c["type"] == "layers")
    return [layer.removeprefix("equipoise.") for layer in reversed(layers)]


def table() -> str:
    """Return the table: each room with the first line of its docstring."""
    lines = ["| package | content |", "|---|---|"]
    for room in rooms():
        text = (ROOT / "src" / "equipoise" / room / "__init__.py").read_text(encoding="utf-8")
        summary = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        lines.append(f"| `{room}` | {summary} |")
    return "\n".join(lines)


def with_table(page: str) -> str:
    """Return the text of the page with the table of today between its markers."""
    before, _, remainder = page.partition(START)
    _, _, after = remainder.partition(END)
    return f"{before}{START}\n{table()}\n{END}{after}"
