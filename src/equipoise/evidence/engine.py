"""The engine: batches of images through a model, in one process or on a cluster."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from equipoise.core.errors import EquipoiseError, MissingExtraError, ModelError, RunError
from equipoise.evidence.decoding import Decoding, ignore_warnings
from equipoise.evidence.store import Outcome, Piece
from equipoise.evidence.working import Asked, Readers, Request, RunOptions, Worker, asked, copies
from equipoise.models import ModelInfo

if TYPE_CHECKING:
    from equipoise.evidence.extraction import Settings


Item = TypeVar("Item")

_END: Any = object()


def aside(items: Generator[Item]) -> Generator[Item]:
    """Yield what a generator yields, made in another thread, one item ahead.

    An interrupt raises here at once, whatever the generator is doing: Daft hangs where it sees
    Ctrl-C before Python does. A generator that is given up is closed in its thread, which is
    waited for only a moment.
    """
    left = threading.Event()
    with closing(Readers(1, left.is_set)) as thread:
        try:
            ready = thread.submit(next, items, _END)
            while (item := thread.result(ready)) is not _END:
                ready = thread.submit(next, items, _END)
                yield item
        finally:
            left.set()
            thread.submit(items.close)


# Daft and Ray tell their makers about each use unless these are set before they are imported.
_SILENT = {"SCARF_NO_ANALYTICS": "1", "DO_NOT_TRACK": "1", "RAY_USAGE_STATS_ENABLED": "0"}
# Seconds that a thread of Daft is given to put away what a stopped piece returned.
_SETTLE = 0.2
# Seconds that a model is given to end its batch once it is interrupted; it may hang.
_LAST = 5.0
_STEP = "images through the model"


def telling(
    progress: Callable[[str, int, int | None], None] | None, total: int
) -> Callable[[int], None]:
    """Return what counts images that are done, and tells how many there are."""
    lock, done = threading.Lock(), 0

    def tell(images: int) -> None:
        nonlocal done
        with lock:
            done += images
            if progress is not None:
                progress(_STEP, done, total)

    return tell


def engine_of(settings: Settings, model: Any, request: Request) -> Native | Cluster:
    """Return the engine that settings name, with a model that can be asked the request.

    Raises
    ------
    ModelError
        When the model cannot be loaded, or asked that.
    RunError
        When the engine cannot be had.
    """
    options = settings.options
    if settings.engine == "ray":
        return Cluster(model, options, request, settings.decoding)
    models = copies(model, options, RunOptions.load)
    return Native(tuple(asked(one, request) for one in models), settings.decoding)


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


@dataclass(frozen=True)
class Identity:
    """What a model is on a worker; `trouble` says why there is none."""

    info: ModelInfo | None = None
    names: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(frozen=True)
class Ask:
    """A model by name and what it is asked: all that a worker needs to make it ready."""

    model: str
    options: RunOptions
    request: Request

    @cached_property
    def ready(self) -> Asked:
        """The model, loaded when it is first needed."""
        return asked(self.options.load(self.model), self.request)

    def __call__(self, _: object) -> Identity:
        """Return what the model is."""
        try:
            return Identity(self.ready.info, self.ready.names)
        except EquipoiseError as error:
            return Identity(trouble=str(error))


@dataclass(frozen=True)
class Remote:
    """Works on pieces in a process of the cluster."""

    ask: Ask
    key: str
    expected: str
    decoding: Decoding
    threads: int

    @cached_property
    def worker(self) -> Worker:
        """What works there, with the model of this process."""
        ignore_warnings()  # the process is the worker's own
        ready = self.ask.ready
        if ready.info.key != self.expected:
            raise ModelError(
                f"{self.ask.model} is not the same on every worker ({ready.info.device}, "
                f"{ready.info.dtype}, weights {ready.info.weights_sha256[:12]}). "
                "To do: name a device and a dtype that all have, and the same files"
            )
        return Worker(self.key, ready, self.decoding, self.threads)

    def __call__(self, piece: Piece) -> Outcome:
        """Return the part of a piece."""
        try:
            return self.worker(piece)
        except EquipoiseError as error:
            return Outcome(piece.number, trouble=str(error))


class Cluster:
    """Daft on the cluster that Ray is connected to, or that RAY_ADDRESS names.

    There is one worker for each GPU, or for each node where the model runs on processors.

    Raises
    ------
    MissingExtraError
        When Ray is not installed.
    ModelError
        When the workers cannot load the model, or ask it that.
    RunError
        When the model is no name, or Daft runs otherwise in this process already.
    """

    def __init__(
        self, model: Any, options: RunOptions, request: Request, decoding: Decoding
    ) -> None:
        if not isinstance(model, str):
            raise RunError(
                "a loaded model stays in this process. To do: give the engine 'ray' the model's "
                "name"
            )
        self._library = daft()
        try:
            import ray
        except ImportError as error:
            raise MissingExtraError("ray", "ray") from error
        use_runner(self._library, "ray")
        gpus = 0 if options.device == "cpu" else int(ray.cluster_resources().get("GPU", 0))
        nodes = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
        cpus = [count for count in nodes if count]
        self._workers, self._gpus = gpus or len(cpus), min(gpus, 1)
        self._cpus = max(sum(cpus) // (2 * gpus), 1) if gpus else min(cpus)
        self._ask, self._decoding = Ask(model, options, request), decoding
        (identity,) = self._run(self._ask, [0])
        self.info, self.names = identity.info, identity.names

    def outcomes(
        self, key: str, pieces: Sequence[Piece], tell: Callable[[int], None]
    ) -> Generator[Outcome]:
        """Yield what becomes of each piece, as soon as it is done."""
        threads = max(int(self._cpus), 1)
        work = Remote(self._ask, key, self.info.key, self._decoding, threads)
        sizes = {piece.number: len(piece.pictures) for piece in pieces}
        for outcome in self._run(work, pieces):
            tell(sizes[outcome.number])
            yield outcome

    def _run(self, work: Callable[[Any], Any], rows: Sequence[Any]) -> Generator[Any]:
        """Yield what the workers make of rows.

        Raises
        ------
        RunError
            When the cluster gives up.
        """
        most = min(self._workers, len(rows))
        plan = planned(
            self._library, work, rows, most=most, split=True, cpus=self._cpus, gpus=self._gpus
        )
        try:
            yield from plan
        except EquipoiseError:
            raise
        except Exception as error:
            told = str(error).strip().partition("\n")[0]
            raise RunError(
                f"the cluster gave up: {type(error).__name__}: {told}. "
                "To do: look at its workers, and run again; finished parts stay"
            ) from error
        finally:
            plan.close()
