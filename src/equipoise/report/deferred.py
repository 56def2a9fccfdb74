"""Tables that a page draws when they come into view, from one copy of their cells."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from equipoise.report.blocks import (
    Badge,
    Block,
    Card,
    Cell,
    Chart,
    Facts,
    Fold,
    Grid,
    Section,
    Table,
)
from equipoise.report.text import unbroken, visible

Deferred = Table | Facts


def deferred_blocks(front: Iterable[Section], back: Iterable[Section]) -> list[Deferred]:
    """Return the blocks that a page draws on demand: all that is folded when it opens.

    Parameters
    ----------
    front : iterable of Section
        Open sections, whose own tables are drawn at once.
    back : iterable of Section
        Folded sections.
    """
    blocks = list[Deferred]()
    for section in front:
        blocks += _folded(section.blocks)
    for section in back:
        blocks += _all(section.blocks)
    return blocks


def _folded(blocks: Iterable[Block]) -> Iterator[Deferred]:
    """Yield the tables that are folded in an open section."""
    for block in blocks:
        if isinstance(block, Card | Fold):
            yield from _of_chart(block.chart if isinstance(block, Card) else None)
            yield from _all(block.blocks)
        elif isinstance(block, Grid):
            for chart in block.charts:
                yield from _of_chart(chart)
        elif isinstance(block, Chart):
            yield from _of_chart(block)


def _all(blocks: Iterable[Block]) -> Iterator[Deferred]:
    for block in blocks:
        if isinstance(block, Table | Facts):
            yield block
        else:
            yield from _folded([block])


def _of_chart(chart: Chart | None) -> Iterator[Deferred]:
    if chart is not None and chart.table is not None:
        yield chart.table


def block_to_json(block: Deferred) -> dict[str, Any]:
    """Return a block as the page's script reads it; texts as people see them."""
    if isinstance(block, Facts):
        return {"facts": [[_text(name), _text(text)] for name, text in block.pairs if text]}
    return {
        "caption": _text(block.caption),
        "columns": [
            [_text(column.title), column.numeric, column.clipped] for column in block.columns
        ],
        "rows": [[*map(_cell, row)] for row in block.rows],
    }


def _cell(cell: Cell) -> str | Mapping[str, Any]:
    if isinstance(cell, str):
        return _text(cell)
    if isinstance(cell, Badge):
        return {"badge": [cell.verdict.replace(" ", "-"), cell.symbol, _text(cell.word)]}
    if not cell.marks:
        return _text(cell.text)
    return {"text": _text(cell.text), "marks": [[m.symbol, _text(m.text)] for m in cell.marks]}


def _text(text: str) -> str:
    return unbroken(visible(text))
