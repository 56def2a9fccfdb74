"""The engine: batches of images through a model, in one process or on a cluster."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from equipoise.core import EquipoiseError, MissingExtraError, ModelError, RunError
from equipoise.evidence.decoding import Decoding, ignore_warnings
from equipoise.evidence.store import Outcome, Piece
from equipoise.evidence.working import (
    Asked,
    Request,
    RunOptions,
    Worker,
    asked,
    copies,
    spread,
)
from equipoise.models import ModelInfo

if TYPE_CHECKING:
    from equipoise.evidence.extraction import Settings

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
    """Threads of this process, one for each copy of the model.

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
        """Yield what becomes of each piece, in order; the next are at work meanwhile."""
        stop = threading.Event()
        threads = max(processors() // len(self.models), 1)
        workers = [
            Worker(key, one, self.decoding, threads, tell, stop.is_set) for one in self.models
        ]
        return spread(workers, Worker.__call__, pieces, stop)


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Remote:
    """Works on pieces in a process of the cluster, with a model that it loads itself."""

    def __init__(
        self, model: str, options: RunOptions, request: Request, decoding: Decoding, threads: int
    ) -> None:
        ignore_warnings()  # the process is the worker's own
        self._given, self._decoding, self._threads = (model, options, request), decoding, threads

    @cached_property
    def _model(self) -> Asked:
        model, options, request = self._given
        try:
            return asked(options.load(model), request)
        except EquipoiseError as error:
            raise ModelError(str(error)) from None  # others do not survive the way back

    def identity(self) -> tuple[ModelInfo, tuple[str, ...]]:
        """Return what the model is, and what the numbers of a row are of."""
        return self._model.info, self._model.names

    def work(self, key: str, expected: str, piece: Piece) -> Outcome:
        """Return the part of a piece.

        Raises
        ------
        ModelError
            When the model is another than that of the first worker.
        """
        info = self._model.info
        if info.key != expected:
            raise ModelError(
                f"{self._given[0]} is not the same on every worker ({info.device}, "
                f"{info.dtype}, weights {info.weights_sha256[:12]}). "
                "To do: name a device and a dtype that all have, and the same files"
            )
        return Worker(key, self._model, self._decoding, self._threads)(piece)


class Cluster:
    """The cluster that Ray is connected to, or that RAY_ADDRESS names.

    There is one worker for each GPU, or for each node where the model runs on processors.

    Raises
    ------
    MissingExtraError
        When Ray is not installed.
    ModelError
        When the workers cannot load the model, or ask it that.
    RunError
        When the model is no name, or the cluster gives up.
    """

    def __init__(
        self, model: Any, options: RunOptions, request: Request, decoding: Decoding
    ) -> None:
        if not isinstance(model, str):
            raise RunError(
                "a loaded model stays in this process. To do: give the engine 'ray' the model's "
                "name"
            )
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # it tells its makers unless this is set
        try:
            import ray
            from ray.util import ActorPool
        except ImportError as error:
            raise MissingExtraError("ray", "ray") from error
        if not ray.is_initialized():
            ray.init()
        gpus = 0 if options.device == "cpu" else int(ray.cluster_resources().get("GPU", 0))
        nodes = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
        cpus = [count for count in nodes if count]
        each = max(sum(cpus) // (2 * gpus), 1) if gpus else min(cpus)
        kind = ray.remote(num_cpus=each, num_gpus=min(gpus, 1))(Remote)
        given = (model, options, request, decoding, max(int(each), 1))
        self._workers = [kind.remote(*given) for _ in range(gpus or len(cpus))]
        self._pool, self._kill = ActorPool(self._workers), ray.kill
        ((self.info, self.names),) = self._made(lambda worker, _: worker.identity.remote(), [0])

    def outcomes(
        self, key: str, pieces: Sequence[Piece], tell: Callable[[int], None]
    ) -> Generator[Outcome]:
        """Yield what becomes of each piece, as soon as it is done."""
        sizes = {piece.number: len(piece.pictures) for piece in pieces}

        def work(worker: Any, piece: Piece) -> Any:
            return worker.work.remote(key, self.info.key, piece)

        try:
            for outcome in self._made(work, pieces):
                tell(sizes[outcome.number])
                yield outcome
        finally:
            self._close()

    def _close(self) -> None:
        """Give processors and GPUs back."""
        for worker in self._workers:
            self._kill(worker)

    def _made(self, call: Callable[[Any, Any], Any], values: Sequence[Any]) -> Generator[Any]:
        """Yield what the workers make of values.

        Raises
        ------
        EquipoiseError
            What a worker raised.
        RunError
            When the cluster gives up.
        """
        try:
            yield from self._pool.map_unordered(call, values)
        except Exception as error:
            self._close()
            cause = getattr(error, "cause", None)
            if isinstance(cause, EquipoiseError):
                raise cause from None
            told = str(error).strip().partition("\n")[0]
            raise RunError(
                f"the cluster gave up: {type(error).__name__}: {told}. "
                "To do: look at its workers, and run again; finished parts stay"
            ) from error
