"""Record findings and tables of every example and demo, and compare two records.

    python -m tools.recorded run FOLDER [--only NAME ...]
    python -m tools.recorded compare BEFORE AFTER

A record has a folder for each example: `findings.parquet`, `tables/`, and `plan.json`. `compare`
brings the record BEFORE to today's names by `names.yaml`, and exits with 1 on any difference.
"""

import argparse
import sys
from pathlib import Path

from tools.recorded.comparing import differences
from tools.recorded.running import RUNS, record_all


def main() -> None:
    """Run a subcommand."""
    parser = argparse.ArgumentParser(prog="python -m tools.recorded", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("folder", type=Path)
    running.add_argument("--only", nargs="*", choices=sorted(RUNS), default=sorted(RUNS))
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "run":
        record_all(options.folder, options.only)
        return
    changes = differences(options.before, options.after)
    sys.stdout.write("\n".join([*changes, f"{len(changes)} differences", ""]))
    sys.exit(1 if changes else 0)


if __name__ == "__main__":
    main()
