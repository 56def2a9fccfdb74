"""The same plan on a Ray cluster: each worker loads the model, and the store stays here."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from equipoise.core.errors import EquipoiseError, MissingExtraError, ModelError, RunError
from equipoise.evidence.asking import Asked, Request, RunOptions, asked
from equipoise.evidence.decoding import Decoding, ignore_warnings
from equipoise.evidence.engine import daft, planned, use_runner
from equipoise.evidence.working import Outcome, Piece, Worker
from equipoise.models import ModelInfo


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


@dataclass(frozen=True)
class Cluster:
    """Daft on Ray.

    Attributes
    ----------
    ask : Ask
    decoding : Decoding
    share : Share
        What each worker is given.
    identity : Identity
    """

    ask: Ask
    decoding: Decoding
    share: Share
    info: ModelInfo
    names: tuple[str, ...]

    def outcomes(
        self, key: str, pieces: Sequence[Piece], tell: Callable[[int], None]
    ) -> Generator[Outcome]:
        """Yield what becomes of each piece, as soon as it is done."""
        work = Remote(self.ask, key, self.info.key, self.decoding, self.share.threads)
        sizes = {piece.number: len(piece.pictures) for piece in pieces}
        for outcome in self.share.run(work, pieces):
            tell(sizes[outcome.number])
            yield outcome


@dataclass(frozen=True)
class Share:
    """What of a cluster each worker is given.

    Attributes
    ----------
    workers : int
        How many there are: one for each GPU, or for each node where the model runs on processors.
    cpus, gpus : int
        Of each.
    """

    workers: int
    cpus: float
    gpus: int = 0
    library: Any = field(default=None, repr=False, compare=False)

    @property
    def threads(self) -> int:
        """How many threads a worker decodes with."""
        return max(int(self.cpus), 1)

    def run(self, work: Callable[[Any], Any], rows: Sequence[Any]) -> Generator[Any]:
        """Yield what the workers make of rows.

        Raises
        ------
        RunError
            When the cluster gives up.
        """
        most = min(self.workers, len(rows))
        plan = planned(
            self.library, work, rows, most=most, split=True, cpus=self.cpus, gpus=self.gpus
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


def cluster(model: Any, options: RunOptions, request: Request, decoding: Decoding) -> Cluster:
    """Return the engine on the cluster that Ray is connected to, or that RAY_ADDRESS names.

    Raises
    ------
    MissingExtraError
        When Ray is not installed.
    ModelError
        When the workers cannot load the model, or ask it that.
    RunError
        When the model is no name, or Daft runs otherwise in this process already.
    """
    if not isinstance(model, str):
        raise RunError(
            "a loaded model stays in this process. To do: give the engine 'ray' the model's name"
        )
    share = _share(options)
    ask = Ask(model, options, request)
    identity: Identity = next(iter([*share.run(ask, [0])]))
    if identity.info is None:
        raise ModelError(identity.trouble)
    return Cluster(ask, decoding, share, identity.info, identity.names)


def _share(options: RunOptions) -> Share:
    library, ray = daft(), _ray()
    use_runner(library, "ray")
    gpus = int(ray.cluster_resources().get("GPU", 0))
    nodes = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
    cpus = [count for count in nodes if count]
    if gpus and options.device != "cpu":
        return Share(gpus, max(sum(cpus) // (2 * gpus), 1), 1, library)
    return Share(len(cpus), min(cpus), 0, library)


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "ray") from error
    return ray
