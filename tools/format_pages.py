"""Write docs/formats: a page for each registered format of data sets, from its docstring.

python -m tools.format_pages
"""

from pathlib import Path

from equipoise.data import FORMATS

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "formats"


def main() -> None:
    """Write the pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, one in FORMATS.items():
        (FOLDER / f"{name}.md").write_text(one.page(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
