"""The text of a rendered page, and snapshots of it."""

import os
import re
from html import unescape
from pathlib import Path

# Rows of a table, and cards, that are kept.
ROWS = 3


def page_text(html: str) -> str:
    """Return what a page says, a line for each block.

    Tables and cards are cut after three. Left out are the insides of cards, and the sections that
    the pages of all kinds share: they have tests of their own.
    """
    body = html[html.index("<main") : html.index("<footer>")]
    body = re.split(r'<details class="section" id="(?:evidence|models|gallery|data)"', body)[0]
    body = re.sub(r'(?s)<div class="inside">.*?(?=<details class="card">|</section>)', "", body)
    body = re.sub(r"(?s)<tbody>.*?</tbody>", _first_rows, body)
    body = re.sub(r'(?s)<details class="card">.*(?=</section>)', _first_cards, body)
    blocks = re.sub(r"<(?!/?(?:span|strong|code|t[dh])\b)[^>]+>", "\n", body)
    plain = unescape(re.sub(r"<[^>]+>", " ", blocks))
    return "".join(f"{' '.join(line.split())}\n" for line in plain.splitlines() if line.strip())


def _first_rows(body: re.Match[str]) -> str:
    return "".join(re.findall(r"(?s)<tr>.*?</tr>", body[0])[:ROWS])


def _first_cards(cards: re.Match[str]) -> str:
    return "".join(cards[0].split('<details class="card">')[: ROWS + 1])


def check_snapshot(path: Path, text: str) -> None:
    """Compare a text with a file; EQUIPOISE_SNAPSHOTS=write writes the file."""
    if os.environ.get("EQUIPOISE_SNAPSHOTS") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
