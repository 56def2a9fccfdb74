"""The record of what was measured: for each workload its rows, on which day, and on which machine.

The order of record.jsonl is that of the names, so that a workload measured anew changes one line.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.harness import Row, machine

RECORD = Path(__file__).with_name("record.jsonl")


@dataclass(frozen=True)
class Measured:
    """A workload as it was measured last.

    Attributes
    ----------
    workload : str
        The name of its module, such as "w2".
    day : str
        The day it was measured, such as "2026-11-20".
    machine : dict of str
        What `harness.machine` tells.
    rows : sequence of Row
        At least one.
    """

    workload: str
    day: str
    machine: dict[str, str]
    rows: Sequence[Row]

    @property
    def facts(self):
        """What tells its machine from others."""
        return frozenset(self.machine.items())


def keep(workload, rows):
    """Put what was measured now, on this machine, in the place of the workload's earlier rows."""
    now = Measured(workload, datetime.now(UTC).date().isoformat(), machine(), [*rows])
    keep_lines(RECORD, [*recorded(), now], lambda measured: measured.workload)


def recorded():
    """Return every workload that was measured, in the order of their names."""
    lines = read_lines(RECORD)
    return [Measured(**line | {"rows": [Row(**row) for row in line["rows"]]}) for line in lines]


def keep_lines(path, measurements, key):
    """Write a line of JSON for each key, the last one's, in the order of the keys."""
    by_key = {key(measurement): measurement for measurement in measurements}
    lines = [json.dumps(asdict(by_key[name]), ensure_ascii=False) for name in sorted(by_key)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_lines(path):
    """Return what the lines of a file hold; nothing where there is none."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]
