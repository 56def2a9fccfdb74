"""`equipoise planted`: what metrics say of worlds whose bias is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli.outputs import (
    CALIBRATION,
    FIGURE,
    check_output,
    overwrite_option,
    write_output,
)
from equipoise.cli.terminal import Steps, json_option, say, say_json

if TYPE_CHECKING:
    from equipoise.planted.calibration import Calibration

_DEFAULT = Path("runs", "calibration", "calibration-families.md")


@click.command("planted")
@click.argument("action", type=click.Choice(["calibrate"]))
@click.option("--quick", is_flag=True, help="Few samples: a minute or two, and rough shares.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write the page [default: runs/calibration/calibration-families.md].",
)
@overwrite_option
@json_option
def command(action: str, quick: bool, out: Path | None, overwrite: bool, as_json: bool) -> None:  # noqa: ARG001 - there is one action so far
    """Measure metrics in worlds whose bias is known.

    calibrate: false alarms without bias, estimates that rise with it, and how many images are
    needed to find it, for metrics of associations, retrieval, concepts and diversity. Writes a
    page in Markdown, and its curves into figures/ beside it. Takes a quarter of an hour or so,
    needs no data, and gives the same bytes each time.
    """
    from equipoise.planted import calibration

    page = out or _DEFAULT
    check_output(page, CALIBRATION, overwrite=overwrite)
    with Steps() as progress:
        found = calibration.calibrate(quick=quick, progress=progress)
    written = _write(found, page, overwrite)
    if as_json:
        say_json(_facts(found) | {"page": str(page), "figures": [*map(str, written)]})
        return
    for name, value in _facts(found).items():
        say(f"{name.replace('_', ' ')}: {value}")
    say(f"page: {page}")


def _write(found: Calibration, page: Path, overwrite: bool) -> list[Path]:
    from equipoise.planted import calibration

    folder = page.parent / "figures"
    drawn = {folder / f"{one.name}.svg": one for one in calibration.figures(found) if one.lines}
    for path in drawn:
        check_output(path, FIGURE, overwrite=overwrite)
    for path, figure in drawn.items():
        write_output(path, figure.svg(), FIGURE, overwrite=overwrite)
    write_output(page, calibration.page(found), CALIBRATION, overwrite=overwrite)
    return [*drawn]


def _facts(found: Calibration) -> dict[str, int]:
    return {
        "tests": len(found.alarms),
        "tests_with_too_many_alarms": sum(one.too_many for one in found.alarms),
        "again_too_many_on_fresh_samples": sum(one.too_many for one in found.again),
        "estimates": len(found.rises),
        "estimates_that_follow_the_bias": sum(one.follows for one in found.rises),
    }
