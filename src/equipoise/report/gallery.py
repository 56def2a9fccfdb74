"""Pictures that a kind of audit puts beside its numbers: small, embedded, with their captions."""

from __future__ import annotations

import base64

from equipoise.core import AuditResult
from equipoise.report.blocks import Block, Gallery, Heading, Picture, Section, Words
from equipoise.report.tables import Row, panels, rows
from equipoise.report.text import count

MOST_BYTES = 48_000
"""Larger pictures are left out and counted: a page stays a page."""

MOST_OF_GROUP, MOST = 12, 72
"""Pictures of one group of a heading, and of the whole page."""

_SIGNATURES = {"png": b"\x89PNG\r\n\x1a\n", "jpeg": b"\xff\xd8\xff"}


def gallery(result: AuditResult) -> Section | None:
    """Pictures of the table `gallery`: `section`, `group`, `caption` and `image` (PNG or JPEG)."""
    found = rows(result, "gallery")
    if not found:
        return None
    blocks: list[Block] = []
    room, unfit = MOST, 0
    for (title,), own in panels(found, "section").items():
        if title:
            blocks.append(Heading(title))
        for (group,), some in panels(own, "group").items():
            fit = [one for row in some if (one := _picture(row)) is not None]
            unfit += len(some) - len(fit)
            shown = fit[: min(MOST_OF_GROUP, room)]
            room -= len(shown)
            if shown:
                blocks.append(Gallery(group, tuple(shown), len(fit)))
    if unfit:
        blocks.append(
            Words(
                (f"{count(unfit)} are left out: no PNG or JPEG of up to {MOST_BYTES // 1000} kB.",),
                "note",
            )
        )
    return Section("gallery", "Pictures", tuple(blocks))


def _picture(row: Row) -> Picture | None:
    """Return a picture that a page can hold; None of any other bytes."""
    data = bytes(row["image"] or b"")
    kind = next((name for name, start in _SIGNATURES.items() if data.startswith(start)), None)
    if kind is None or len(data) > MOST_BYTES:
        return None
    coded = base64.b64encode(data).decode("ascii")
    return Picture(f"data:image/{kind};base64,{coded}", str(row["caption"] or ""))
