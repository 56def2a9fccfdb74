"""The plan that runs over the pieces of an extraction: Daft, in this process or on a cluster."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from equipoise.core.errors import MissingExtraError, ModelError, RunError
from equipoise.evidence.aside import aside
from equipoise.evidence.asking import Asked, Request, asked
from equipoise.evidence.decoding import Decoding
from equipoise.evidence.working import Outcome, Piece, Worker
from equipoise.models import ModelInfo

if TYPE_CHECKING:
    from equipoise.evidence.extraction import Settings

# Daft and Ray tell their makers about each use unless these are set before they are imported.
_SILENT = {"SCARF_NO_ANALYTICS": "1", "DO_NOT_TRACK": "1", "RAY_USAGE_STATS_ENABLED": "0"}
# Seconds that a thread of Daft is given to put away what a stopped piece returned.
_SETTLE = 0.2
# Seconds that a model is given to end its batch once it is interrupted; it may hang.
_LAST = 5.0
_STEP = "images through the model"


class Telling:
    """Counts images that are done, and tells how many there are."""

    def __init__(self, progress: Callable[[str, int, int | None], None] | None, total: int) -> None:
        self._progress, self._total = progress, total
        self._done = 0
        self._lock = threading.Lock()

    def __call__(self, images: int) -> None:
        """Count some more."""
        with self._lock:
            self._done += images
            if self._progress is not None:
                self._progress(_STEP, self._done, self._total)


class Engine(Protocol):
    """Runs one model over pieces."""

    @property
    def info(self) -> ModelInfo:
        """What the model is."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers of a row are of."""
        ...

    def outcomes(
        self, key: str, pieces: Sequence[Piece], tell: Callable[[int], None]
    ) -> Generator[Outcome]:
        """Yield what becomes of each piece, as soon as it is done."""
        ...


def engine_of(settings: Settings, model: Any, request: Request) -> Engine:
    """Return the engine that settings name, with a model that can be asked the request.

    Raises
    ------
    ModelError
        When the model cannot be loaded, or asked that.
    RunError
        When the engine cannot be had.
    """
    if settings.engine == "native":
        return _native(settings, model, request)
    from equipoise.evidence.cluster import cluster

    return cluster(model, settings.options, request, settings.decoding)


@dataclass(frozen=True)
class Native:
    """Daft inside this process.

    Attributes
    ----------
    models : tuple of Asked
        The same model, once on each device.
    decoding : Decoding
    """

    models: tuple[Asked, ...]
    decoding: Decoding

    @property
    def info(self) -> ModelInfo:
        """What the model is."""
        return self.models[0].info

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers of a row are of."""
        return self.models[0].names

    def outcomes(
        self, key: str, pieces: Sequence[Piece], tell: Callable[[int], None]
    ) -> Generator[Outcome]:
        """Yield what becomes of each piece, as soon as it is done."""
        library = daft()
        use_runner(library, "native")
        _with_a_loop()
        stop = threading.Event()
        threads = max(processors() // len(self.models), 1)
        free: SimpleQueue[Worker] = SimpleQueue()
        for one in self.models:
            free.put(Worker(key, one, self.decoding, threads, tell, stop.is_set))

        def work(piece: Piece) -> Outcome:
            if stop.is_set():
                return Outcome(piece.number, trouble="stopped")
            worker = free.get()
            try:
                return worker(piece)
            finally:
                free.put(worker)

        whole = False
        try:
            yield from aside(planned(library, Here(work), pieces, most=len(self.models)))
            whole = True
        finally:
            # Interrupted, Daft does not wait for what is at work. That ends with its batch, and its
            # thread must not meet the end of the interpreter, which it would abort.
            stop.set()
            for _ in self.models:
                with suppress(Empty):
                    free.get(timeout=None if whole else _LAST)
            if not whole:
                time.sleep(_SETTLE)


def _with_a_loop() -> None:
    """Have Daft begin a new event loop where an interrupt ended its own: it would wait for ever."""
    from daft import event_loop

    if event_loop.LOOP is not None and not event_loop.LOOP.loop.is_running():
        event_loop.LOOP.loop.close()
        event_loop.LOOP = None


def _native(settings: Settings, model: Any, request: Request) -> Native:
    if not isinstance(model, str):
        return Native((asked(model, request),), settings.decoding)
    options = settings.options
    first = asked(options.load(model), request)
    more = (f"cuda:{index}" for index in range(1, _gpus(first.info)))
    others = (asked(replace(options, device=device).load(model), request) for device in more)
    return Native((first, *others), settings.decoding)


def _gpus(info: ModelInfo) -> int:
    """Return on how many devices a model is to run: on every GPU, unless one was named."""
    if info.device != "cuda":
        return 1
    from equipoise.models.runtimes import gpus

    return gpus()


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Here:
    """Something of this process, for a plan that stays in it.

    Daft asks of every argument whether it can be pickled, and pickles none while the plan runs in
    this process; a loaded model need not be able to, and is not to be copied.
    """

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __reduce__(self) -> tuple[type[Here], tuple[()]]:
        return Here, ()

    def __call__(self, piece: Piece) -> Outcome:
        """Work on a piece."""
        outcome: Outcome = self.value(piece)
        return outcome


def planned(
    library: Any,
    work: Callable[[Any], Any],
    rows: Sequence[Any],
    *,
    most: int = 1,
    split: bool = False,
    **more: Any,
) -> Generator[Any]:
    """Yield what a plan of Daft makes of rows, as soon as each is done.

    Parameters
    ----------
    library : module
        Daft.
    work : callable
        From a row to its outcome, which has a `trouble`; what it needs it makes at its first call.
    rows : sequence
    most : int
        Rows at work at the same time.
    split : bool
        Whether each row may go to another process.
    **more
        What the class of Daft is given: processors and GPUs.

    Raises
    ------
    ModelError
        When an outcome tells of trouble.
    """
    anything = library.DataType.python()

    class Part:
        """Holds what works on rows, in each process that Daft runs it in."""

        def __init__(self, work: Callable[[Any], Any]) -> None:
            self.work = work

        @library.method.batch(return_dtype=anything, batch_size=1)  # type: ignore[untyped-decorator]
        def made(self, rows: Any) -> Any:
            """Return the outcomes of some rows."""
            found = [self.work(row) for row in rows.to_pylist()]
            return library.Series.from_pylist(found, dtype=anything)

    part = library.cls(Part, max_concurrency=most, use_process=False, **more)(work)
    plan = library.from_pydict({"row": library.Series.from_pylist([*rows], dtype=anything)})
    if split:
        plan = plan.into_partitions(len(rows))
    for found in plan.select(part.made(plan["row"]).alias("found")).iter_rows(
        results_buffer_size=None if split else 1
    ):
        if found["found"].trouble:
            raise ModelError(found["found"].trouble)
        yield found["found"]


def daft() -> Any:
    """Return the module daft, told to send nothing anywhere.

    Raises
    ------
    MissingExtraError
        When it is not installed.
    """
    os.environ.update(_SILENT)
    os.environ.setdefault("DAFT_PROGRESS_BAR", "0")  # ours speaks for it
    try:
        import daft
    except ImportError as error:
        raise MissingExtraError("daft", "images") from error
    return daft


def use_runner(library: Any, name: str) -> None:
    """Have Daft run plans in this process, or on Ray: once chosen, a process keeps it.

    Raises
    ------
    RunError
        When the process has chosen otherwise.
    """
    from daft.runners import get_or_create_runner

    try:
        if name == "native":
            library.set_runner_native()
        else:
            library.set_runner_ray(noop_if_initialized=True)
    except library.exceptions.DaftCoreException:
        found = get_or_create_runner().name
        if found != name:
            raise RunError(
                f"the engine {name!r} was asked for, and Daft runs by {found!r} in this process "
                "already. To do: use one engine in a process"
            ) from None
