"""Write docs/calibration-families.md: what metrics find in worlds whose bias is known.

    python -m tools.calibration [--quick] [--out FILE]

Takes a quarter of an hour or so, needs no data, and writes the same bytes each time.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.calibration.page import page
from tools.calibration.runner import calibrate

DOCS = Path(__file__).resolve().parents[2] / "docs"


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, measure, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.calibration", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few samples: a minute or two")
    parser.add_argument("--out", type=Path, default=DOCS / "calibration-families.md")
    chosen = parser.parse_args(arguments)
    found = calibrate(quick=chosen.quick, progress=_progress)
    chosen.out.write_text(page(found), encoding="utf-8", newline="\n")
    sys.stdout.write(f"{chosen.out}\n")


def _progress(step: str, done: int, total: int) -> None:
    sys.stderr.write(f"{step}: {done} of {total}\n")


if __name__ == "__main__":
    main()
