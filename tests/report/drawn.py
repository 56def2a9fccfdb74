"""What sections of a report draw."""

from equipoise.report.blocks import Chart, Fold, Grid


def charts(blocks):
    """Charts in the order of the page, those in grids and folds with them."""
    found = []
    for block in blocks:
        if isinstance(block, Chart):
            found.append(block)
        elif isinstance(block, Grid):
            found += block.charts
        elif isinstance(block, Fold):
            found += charts(block.blocks)
    return found
