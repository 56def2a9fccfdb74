"""The plan that runs over pieces: Daft, embedded or on a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from equipoise.core.errors import InputError, MissingExtraError
from equipoise.evidence.working import Outcome, Piece, Worker

ENGINES = ("native", "ray")

# Daft and Ray tell their makers about each use unless these are set before they are imported.
_SILENT = {"SCARF_NO_ANALYTICS": "1", "DO_NOT_TRACK": "1", "RAY_USAGE_STATS_ENABLED": "0"}


class Here:
    """Something of this process, for a plan that stays in it.

    Daft asks of every argument whether it can be pickled, and pickles none when the plan runs in
    this process; a loaded model need not, and shall not.
    """

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __reduce__(self) -> tuple[type[Here], tuple[()]]:
        return Here, ()


def daft() -> Any:
    """Return the module daft, told to send nothing anywhere."""
    os.environ.update(_SILENT)
    os.environ.setdefault("DAFT_PROGRESS_BAR", "0")  # ours speaks for it
    try:
        import daft
    except ImportError as error:
        raise MissingExtraError("daft", "images") from error
    return daft


def outcomes(worker: Worker, pieces: Sequence[Piece], engine: str) -> Iterator[Outcome]:
    """Yield what becomes of each piece, as soon as it is done."""
    if engine not in ENGINES:
        raise InputError(f"there is no engine {engine!r}; there are {', '.join(ENGINES)}")
    library = daft()
    anything = library.DataType.python()

    class Part:
        def __init__(self, here: Here) -> None:
            self.work = here.value

        @library.method.batch(return_dtype=anything, batch_size=1)  # type: ignore[untyped-decorator]
        def made(self, pieces: Any) -> Any:
            found = [self.work(piece) for piece in pieces.to_pylist()]
            return library.Series.from_pylist(found, dtype=anything)

    part = library.cls(Part, max_concurrency=1, use_process=False)(Here(worker))
    rows = library.Series.from_pylist([*pieces], dtype=anything)
    plan = library.from_pydict({"piece": rows})
    for row in plan.select(part.made(plan["piece"]).alias("part")).iter_rows(results_buffer_size=1):
        yield row["part"]
