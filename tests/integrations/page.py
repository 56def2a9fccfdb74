"""The blocks of the page on integrations."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "integrations.md"


def block(title):
    """Return the first block of code under a heading."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2]
    return re.search(r"```\w+\n(.*?)```", section, re.DOTALL)[1]
