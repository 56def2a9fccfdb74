"""The text of a rendered page, and snapshots of it."""

import json
import os
import re
from html import escape, unescape

ROWS = 3  # of a table, that are kept
_SHARED = r'<details class="section" id="(?:evidence|models|gallery|data)"'


def page_text(html):
    """Return what the sections of a kind say, a line for each block; tables are cut.

    The sections that the pages of all kinds share have tests of their own.
    """
    html = with_tables(html)
    body = re.split(_SHARED, html[html.index('<details class="section"') :])[0]
    body = re.sub(r"(?s)<tbody>.*?</tbody>", _first_rows, body)
    blocks = re.sub(r"<(?!/?(?:span|strong|code|t[dh])\b)[^>]+>", "\n", body)
    plain = unescape(re.sub(r"<[^>]+>", " ", blocks))
    return "".join(f"{' '.join(line.split())}\n" for line in plain.splitlines() if line.strip())


def with_tables(html):
    """Return a page with the tables that its script draws on demand in their place."""
    data = re.search(r'(?s)<script type="application/json" id="page-data">(.*?)</script>', html)[1]
    blocks = json.loads(data)["tables"]
    return re.sub(
        r'(<div [^>]*)data-table="(\d+)"[^>]*></div>',
        lambda box: f"{box[1]}>{_drawn(blocks[int(box[2])])}</div>",
        html,
    )


def _drawn(block):
    if "facts" in block:
        pairs = (
            f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>"
            for name, text in block["facts"]
        )
        return f"<dl>{''.join(pairs)}</dl>"
    heads = "".join(f"<th>{escape(title)}</th>" for title, *_ in block["columns"])
    lines = "".join(
        f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in block["rows"]
    )
    return (
        f"<table><caption><span>{escape(block['caption'])}</span></caption>"
        f"<thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"
    )


def _cell(cell):
    if isinstance(cell, str):
        return escape(cell)
    if "badge" in cell:
        return " ".join(map(escape, cell["badge"][1:]))
    return " ".join((escape(cell["text"]), *(f"{sign}{text}" for sign, text in cell["marks"])))


def _first_rows(body):
    return "".join(re.findall(r"(?s)<tr>.*?</tr>", body[0])[:ROWS])


def check_snapshot(path, text):
    """Compare a text with a file; EQUIPOISE_SNAPSHOTS=write writes the file."""
    if os.environ.get("EQUIPOISE_SNAPSHOTS") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
