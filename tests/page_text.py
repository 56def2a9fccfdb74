"""The text of a rendered page, and snapshots of it."""

import os
import re
from html import unescape

ROWS = 3  # of a table, that are kept
_SHARED = r'<details class="section" id="(?:evidence|models|gallery|data)"'


def page_text(html):
    """Return what the sections of a kind say, a line for each block; tables are cut.

    The sections that the pages of all kinds share have tests of their own.
    """
    body = re.split(_SHARED, html[html.index('<details class="section"') :])[0]
    body = re.sub(r"(?s)<tbody>.*?</tbody>", _first_rows, body)
    blocks = re.sub(r"<(?!/?(?:span|strong|code|t[dh])\b)[^>]+>", "\n", body)
    plain = unescape(re.sub(r"<[^>]+>", " ", blocks))
    return "".join(f"{' '.join(line.split())}\n" for line in plain.splitlines() if line.strip())


def _first_rows(body):
    return "".join(re.findall(r"(?s)<tr>.*?</tr>", body[0])[:ROWS])


def check_snapshot(path, text):
    """Compare a text with a file; EQUIPOISE_SNAPSHOTS=write writes the file."""
    if os.environ.get("EQUIPOISE_SNAPSHOTS") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
