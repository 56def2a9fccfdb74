"""What sections of a report draw."""

from collections.abc import Iterable

from equipoise.report.blocks import Block, Chart, Fold, Grid


def charts(blocks: Iterable[Block]) -> list[Chart]:
    """Charts in the order of the page, those in grids and folds with them."""
    found: list[Chart] = []
    for block in blocks:
        if isinstance(block, Chart):
            found.append(block)
        elif isinstance(block, Grid):
            found += block.charts
        elif isinstance(block, Fold):
            found += charts(block.blocks)
    return found
