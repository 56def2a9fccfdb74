"""Write docs/formats: a page for each registered format of data sets, from its docstring.

python -m tools.format_pages
"""

import inspect
from pathlib import Path

from equipoise.data import FORMATS, DataFormat

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "formats"


def page(data_format: DataFormat) -> str:
    """Return the page of a format: what it is, its files, options and columns."""
    about = inspect.cleandoc(inspect.getmodule(data_format.read).__doc__ or "")
    title, _, source = about.partition("\n")
    code = f"`{data_format.read.__module__}.{data_format.read.__name__}`"
    files = ", ".join(f"`{role}`" for role in data_format.roles) or "one file or folder"
    head = [
        f"# `{data_format.name}`",
        title,
        source.strip(),
        f"`files`: {files}. In Python: {code}.",
    ]
    return (
        "\n\n".join([*filter(None, head), _sections(inspect.getdoc(data_format.read) or "")]) + "\n"
    )


def _sections(doc: str) -> str:
    """Return a docstring with its sections as headings and its parameters as lists."""
    lines = doc.split("\n")
    formatted: list[str] = []
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below and set(below) == {"-"}:
            formatted += [f"## {line}", ""]
        elif set(line) == {"-"} and line:
            continue
        elif " : " in line and not line.startswith(" "):
            name, _, kind = line.partition(" : ")
            formatted.append(f"- `{name}` ({kind})")
        else:
            formatted.append(f"  {line.strip()}" if line.startswith(" ") else line)
    return "\n".join(formatted).strip()


def main() -> None:
    """Write the pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, data_format in FORMATS.items():
        (FOLDER / f"{name}.md").write_text(page(data_format), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
