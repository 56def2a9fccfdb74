"""Runs of a model over images: requests, workers, and engines for one machine or several."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from itertools import compress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from equipoise.core import (
    DataError,
    EquipoiseError,
    Facts,
    Fields,
    InputError,
    MissingExtraError,
    ModelError,
    RunError,
    Strings,
)
from equipoise.core.files import table_bytes
from equipoise.data.predictions import check_probabilities
from equipoise.evidence.pictures import (
    Decoding,
    Image,
    ImageError,
    Pictures,
    ignore_warnings,
    pack_digests,
    pixels,
)
from equipoise.evidence.store import FAILURES_KEY, Failure, Outcome, Piece, digest_of
from equipoise.models import Answerer, Classifier, DualEncoder, ModelInfo, PairScorer, load_model
from equipoise.models.choosing import answer_each, letter_probabilities
from equipoise.models.generators import ImageGenerator
from equipoise.models.images import Images
from equipoise.models.loading import load_generator
from equipoise.models.protocols import Model, NoAnswer, ServiceError
from equipoise.models.service import Service

COLUMNS: dict[str, str] = {
    "embeddings": "embedding",
    "scores": "scores",
    "probabilities": "probabilities",
    "answers": "answer",
    "choices": "choice",
    "activations": "map",
}
"""The column that holds what the model gave, by table."""

_MAP = [("cells", pa.list_(pa.float32())), ("frame", pa.list_(pa.float64()))]
_CHOICE = [("answer", pa.string()), ("probabilities", pa.list_(pa.float64()))]
CELLS = {
    "answers": pa.string(),
    "choices": pa.struct(_CHOICE),
    "activations": pa.struct([*_MAP, ("grid", pa.list_(pa.int64()))]),
}
"""Types of columns that hold no vectors, by table."""
_TEXTS: Mapping[str, type] = {"answers": str, "choices": dict}


@dataclass(frozen=True)
class RunOptions:
    """How a model is loaded, as `equipoise.models.load_model` takes it."""

    device: str = "auto"
    dtype: str = "auto"
    backend: str = "auto"
    revision: str | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False
    service: Service | None = None

    def load(self, name: str) -> Any:
        """Load a model by name.

        Raises
        ------
        ModelError
            When it cannot be loaded.
        """
        return load_model(name, **vars(self))

    def load_generator(self, name: str) -> ImageGenerator:
        """Load a model that makes images; errors as of `load`."""
        options = dict(vars(self))
        del options["backend"]
        return load_generator(name, **options)

    def keeping_replies(self, store: Path) -> RunOptions:
        """Return the options with replies of a served model kept in a store."""
        if self.service is None:
            return self
        return replace(self, service=replace(self.service, store=str(store)))


Loaded = TypeVar("Loaded", bound=Model)


def load_copies(
    model: str | Loaded, options: RunOptions, load: Callable[[RunOptions, str], Loaded]
) -> list[Loaded]:
    """Return a loaded model, or one that is named, once on each device that it may use."""
    if not isinstance(model, str):
        return [model]
    first = load(options, model)
    if first.info.device != "cuda":  # or one device was named
        return [first]
    from equipoise.models.runtimes import gpus

    devices = (f"cuda:{index}" for index in range(1, gpus()))
    return [first, *(load(replace(options, device=device), model) for device in devices)]


class OptionQuestion(NamedTuple):
    """A question with lettered options.

    Attributes
    ----------
    text : str
        Question and options, as the model is asked.
    n_options : int
    """

    text: str
    n_options: int


@dataclass(frozen=True)
class Request:
    """A question or task for every image.

    Attributes
    ----------
    table : str
        ``embeddings``, ``scores``, ``probabilities``, ``answers``, ``choices`` or
        ``activations``.
    texts : tuple of str
        What `scores` are about.
    question : str
        What `answers` answer.
    features : bool
        Whether embeddings are a classifier's features.
    questions : mapping of str to OptionQuestion
        What `choices` are about, by the id of the image.
    letters : bool
        Whether `choices` come with probabilities of letters, where the model gives them.
    facts : mapping
        What else decides the values, as JSON holds it.
    """

    table: str
    texts: Strings = ()
    question: str = ""
    features: bool = False
    questions: Mapping[str, OptionQuestion] = field(default_factory=dict)
    letters: bool = False
    facts: Facts = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the texts of scores.

        Raises
        ------
        InputError
            When scores have no texts, or one twice.
        """
        if self.table == "scores" and (not self.texts or len({*self.texts}) < len(self.texts)):
            raise InputError("scores need texts, each once")


@dataclass(frozen=True)
class Extractor:
    """A loaded model, ready for a request.

    Attributes
    ----------
    info : ModelInfo
    names : tuple of str
        What the columns of the values are: texts, or labels; () for other tables.
    call : callable
        From ids and images to values: an array with a row per image, or a list of texts or maps.
    width : int or None
        Length of a row where it is known beforehand.
    table : str
    open : callable
        Called before a part is computed: a model that loads late says here, once, that it cannot.
    has_hidden_state : bool
        Whether outputs depend on more than `info` shows, such as attributes of a module.
    """

    info: ModelInfo
    names: Strings
    call: Callable[[Sequence[str], Images], Any]
    width: int | None
    table: str
    open: Callable[[], Any] = lambda: None
    has_hidden_state: bool = False

    @property
    def batch(self) -> int:
        """Most images given to the model at once: the same on every machine of this kind."""
        return 256 if self.info.device.startswith("cuda") else 32

    def values(self, ids: Sequence[str], images: Images) -> Any:
        """Return the outputs for images: a text or map each, or a row of a matrix.

        Raises
        ------
        ModelError
            When it is not of the form that its kind of model promises.
        """
        outputs = self.call(ids, images)
        if self.table in CELLS:
            kind = dict if self.table == "activations" else _TEXTS[self.table] | NoAnswer
            if len(outputs) != len(images) or not all(isinstance(cell, kind) for cell in outputs):
                raise FormError(
                    f"{self.info.name} gave {len(outputs)} {self.table} for {len(images)}."
                )
            return outputs
        values = np.array(outputs, dtype=np.float32)  # models may use their buffers again
        if values.ndim != 2 or values.shape != (len(images), self.width or values.shape[1]):
            raise FormError(
                f"{self.info.name} gave an array of shape {values.shape} for {len(images)} images, "
                f"expected ({len(images)}, {self.width or 'dimension'})."
            )
        return values

    def column(self, ids: Sequence[str], values: Sequence[Any]) -> pa.Array:
        """Return values of several batches as a column.

        Raises
        ------
        ModelError
            When their rows are not of one length, or probabilities are none.
        """
        if self.table == "answers":
            values = [text.encode("utf-8", "replace").decode() for text in values]
        if self.table in CELLS:
            return pa.array(values, CELLS[self.table])
        if len({len(row) for row in values}) > 1:
            raise FormError(f"{self.info.name} gave rows of different lengths, expected one.")
        rows = np.stack(values) if values else np.empty((0, self.width or 1), np.float32)
        if self.table == "probabilities":
            sums = self.info.preprocessing.get("probabilities") != "sigmoid"
            try:
                check_probabilities(rows, self.names, self.info.name, ids=ids, sums=sums)
            except DataError as error:
                raise FormError(str(error)) from None
        return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])


class FormError(ModelError):
    """A model gave something else than its kind promises: no image is to blame for it."""


def make_extractor(model: Model | Extractor, request: Request) -> Extractor:
    """Return a model as an extractor for a request; keep an extractor unchanged.

    Raises
    ------
    ModelError
        When this kind of model cannot be asked that.
    """
    if isinstance(model, Extractor):
        return model
    info, table = model.info, request.table
    call: Callable[[Images], Any]
    names: Strings = ()
    width = None
    match table, model:
        case "embeddings", DualEncoder() if not request.features:
            call, width = model.embed_images, info.dimension
        case "embeddings", Classifier():
            call, width = model.features, info.dimension
        case "scores", PairScorer():
            call, names = (lambda images: model.score(images, request.texts)), request.texts
        case "probabilities", Classifier():
            call, names = model.predict_proba, tuple(model.labels)
        case "answers", Answerer():
            call = lambda images: model.answer(images, request.question)  # noqa: E731
        case "choices", Answerer():
            choose = partial(_choices, model, request)
            return Extractor(info, names, choose, None, table, getattr(model, "open", _nothing))
        case _:
            raise ModelError(
                f"{info.name} ({info.family}) gives no {table}. To do: name a model of another kind"
            )
    late = getattr(model, "open", _nothing)
    hidden = getattr(model, "has_hidden_state", False)
    return Extractor(
        info, names, lambda _, images: call(images), len(names) or width, table, late, hidden
    )


def _nothing() -> None:
    """Do nothing where a model has nothing to open."""


def _choices(
    model: Answerer, request: Request, ids: Sequence[str], images: Images
) -> list[Fields | NoAnswer]:
    """Return the answer to each image's own question, with probabilities of its letters."""
    questions = [request.questions[image_id] for image_id in ids]
    texts = [question.text for question in questions]
    answers = answer_each(model, images, texts, probabilities=request.letters)
    return [
        answer
        if isinstance(answer, NoAnswer)
        else {
            "answer": answer.text.encode("utf-8", "replace").decode(),
            "probabilities": letter_probabilities(answer.log_probabilities, question.n_options),
        }
        for answer, question in zip(answers, questions, strict=True)
    ]


Item = TypeVar("Item")
Found = TypeVar("Found")

# Seconds after which a wait looks whether the run is stopped.
_PATIENCE = 0.1


class StoppedError(Exception):
    """The run was stopped before something was read."""


class Readers:
    """So many threads at work; a file that never answers holds up no exit.

    Those of `concurrent.futures` are waited for when the interpreter ends, whatever blocks them:
    a mount that is gone, or a disk that does not answer.

    Parameters
    ----------
    threads : int
    stopped : callable
        Whether nobody waits any more.
    grace : float
        Seconds that calls have to end then.
    """

    def __init__(self, threads: int, stopped: Callable[[], bool], *, grace: float = 1.0) -> None:
        self._stopped, self._grace = stopped, grace
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name="reader", daemon=True) for _ in range(threads)
        ]

        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Wait for the threads; where the run is stopped, for a moment only."""
        for _ in self._threads:
            self._work.put(None)
        remaining = self._grace
        for thread in self._threads:
            while thread.is_alive() and remaining > 0:
                begun = time.monotonic()
                thread.join(_PATIENCE)
                if self._stopped():
                    remaining -= time.monotonic() - begun

    def submit(self, call: Callable[..., Found], *arguments: Any) -> Future[Found]:
        """Have a thread call something."""
        future: Future[Found] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(call(*arguments))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                future.set_exception(error)

        self._work.put(work)
        return future

    def result(self, future: Future[Found]) -> Found:
        """Return the result of a call.

        Raises
        ------
        StoppedError
            When the run is stopped before there is any.
        """
        while True:
            try:
                return future.result(_PATIENCE)
            except TimeoutError:
                if future.done():  # an error of the call itself
                    return future.result()
                if self._stopped():
                    raise StoppedError from None

    def map(
        self,
        call: Callable[[Item], Found],
        items: Iterable[Item],
        room: Callable[[Sequence[Future[Found]]], bool] = lambda _: True,
    ) -> Generator[Found]:
        """Yield the results of a call for items, in order, working ahead.

        Parameters
        ----------
        call : callable
        items : iterable
        room : callable
            Whether one more may be at work beside those that wait to be yielded.

        Raises
        ------
        StoppedError
            As `result`.
        """
        waiting: deque[Future[Found]] = deque()
        try:
            for item in items:
                waiting.append(self.submit(call, item))
                while not room(waiting):
                    yield self.result(waiting.popleft())
            while waiting:
                yield self.result(waiting.popleft())
        finally:
            for future in waiting:
                future.cancel()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()


# Seconds that a model is given to end its batch once it is interrupted; it may hang.
_LAST = 5.0
One = TypeVar("One")


def map_workers(
    workers: Sequence[One],
    work: Callable[[One, Item], Found],
    items: Iterable[Item],
    stop: threading.Event,
) -> Generator[Found]:
    """Yield the outputs of workers for items, in order, working ahead.

    Parameters
    ----------
    workers : sequence
        Each works on one item at a time, in a thread.
    work : callable
        From a worker and an item to what is made of it.
    items : iterable
    stop : Event
        Set where nobody waits any more; what is at work then is waited for a few seconds.
    """
    free: SimpleQueue[One] = SimpleQueue()
    for idle_worker in workers:
        free.put(idle_worker)

    def compute(item: Item) -> Found:
        worker = free.get()
        try:
            return work(worker, item)
        finally:
            free.put(worker)

    with closing(Readers(len(workers), stop.is_set, grace=_LAST)) as pool:
        try:
            yield from pool.map(compute, items, lambda waiting: len(waiting) < 2 * len(workers))
        finally:
            stop.set()


# Pixels of one batch, and of what is decoded ahead of it: 200 MB of large photographs each.
_HELD = 1 << 26
_NOT_FINITE = "it gave NaN or infinity"


@dataclass(frozen=True)
class Worker:
    """Works on pieces, decoding ahead of the model.

    Attributes
    ----------
    key : str
        Of the folder.
    extractor : Extractor
    decoding : Decoding
    threads : int
        That read and decode.
    tell : callable
        Called with how many images more are done.
    stopped : callable
        Whether nobody waits for the outcome any more.
    """

    key: str
    extractor: Extractor
    decoding: Decoding
    threads: int = 1
    tell: Callable[[int], None] = lambda _: None
    stopped: Callable[[], bool] = lambda: False

    def __call__(self, piece: Piece) -> Outcome:
        """Return the part of a piece; reuse the stored part where it still holds."""
        with closing(Readers(self.threads, self.stopped)) as readers:
            return self._reuse(piece, readers) or self._compute(piece, readers)

    def _reuse(self, piece: Piece, readers: Readers) -> Outcome | None:
        if not piece.have:
            return None

        def content(place: int) -> str:
            return _read(piece.pictures, place)[1]  # the bytes themselves are not kept

        contents = [*readers.map(content, range(len(piece.pictures)))]
        if digest_of(self.key, piece.pictures, contents) != piece.have:
            return None
        self.tell(len(contents))
        return Outcome(piece.number, piece.have, contents=pack_digests(contents))

    def _compute(self, piece: Piece, readers: Readers) -> Outcome:
        self.extractor.open()
        contents: list[str] = []
        computed = 0
        ids: list[str] = []
        values: list[Any] = []
        failures: list[Failure] = []
        for batch in self._batches(piece.pictures, readers):
            if self.stopped():
                raise StoppedError
            contents += [image.content for image in batch]
            images = {
                image.name: image.pixels for image in batch if not isinstance(image.pixels, Failure)
            }
            values_by_id = self._values(images)
            for image in batch:
                value = values_by_id.get(image.name, image.pixels)
                if isinstance(value, Failure):
                    failures.append(value)
                else:
                    ids.append(image.name)
                    values.append(value)
            computed += len(images)
            self.tell(len(batch))
        failures.sort(key=lambda failure: failure.image_id)
        digest = digest_of(self.key, piece.pictures, contents)
        facts = json.dumps([asdict(failure) for failure in failures])
        cells = self.extractor.column(ids, values)
        table = pa.table(
            {"image_id": pa.array(ids, pa.string()), COLUMNS[self.extractor.table]: cells}
        )
        data = table_bytes(
            table.replace_schema_metadata({FAILURES_KEY: facts.encode()}),
            compression="zstd" if self.extractor.table in CELLS else "none",
            use_dictionary=False,
        )
        return Outcome(
            piece.number, digest, computed, tuple(failures), data, pack_digests(contents)
        )

    def _batches(self, pictures: Pictures, readers: Readers) -> Iterator[list[_DecodedImage]]:
        """Yield batches, cut by count and pixels and never by timing."""
        batch: list[_DecodedImage] = []
        n_pixels = 0
        places = range(len(pictures))
        for image in readers.map(partial(self._decode, pictures), places, self._room):
            if batch and (len(batch) == self.extractor.batch or n_pixels + image.size > _HELD):
                yield batch
                batch, n_pixels = [], 0
            batch.append(image)
            n_pixels += image.size
        yield batch

    def _room(self, waiting: Sequence[Future[_DecodedImage]]) -> bool:
        """Whether the memory bears one more image that is decoded ahead."""
        if len(waiting) < self.threads:
            return True
        n_pixels = sum(future.result().size for future in waiting if future.done())
        return len(waiting) < 2 * self.extractor.batch and n_pixels < _HELD

    def _decode(self, pictures: Pictures, place: int) -> _DecodedImage:
        name = pictures.ids[place]
        data, content, reason = _read(pictures, place)
        if data is None:
            return _DecodedImage(name, content, Failure(name, "read", reason))
        try:
            return _DecodedImage(name, content, pixels(data, self.decoding, pictures.crop(place)))
        except ImageError as error:
            return _DecodedImage(name, content, Failure(name, "decode", error.reason))

    def _values(self, images: Mapping[str, Image]) -> Fields:
        """Return the value of each image by its id, or why it has none."""
        if not images:
            return {}
        ids = [*images]
        try:
            values = self.extractor.values(ids, [*images.values()])
        except (FormError, ServiceError, RunError):
            raise
        except Exception as error:  # noqa: BLE001 - a model may raise anything over one image
            if len(ids) == 1:
                return {ids[0]: Failure(ids[0], "model", _reason(error))}
            return {name: self._values({name: images[name]})[name] for name in ids}
        values_by_id = dict(zip(ids, values, strict=True))
        for name, value in values_by_id.items():
            if isinstance(value, NoAnswer):
                values_by_id[name] = Failure(name, *value)
        if self.extractor.table not in CELLS:
            for name in compress(ids, (~np.isfinite(values).all(axis=1)).tolist()):
                values_by_id[name] = Failure(name, "model", _NOT_FINITE)
        return values_by_id


@dataclass(frozen=True)
class _DecodedImage:
    """One image after reading and decoding."""

    name: str
    content: str
    pixels: Image | Failure

    @property
    def size(self) -> int:
        return 0 if isinstance(self.pixels, Failure) else self.pixels.size // 3


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def _read(pictures: Pictures, place: int) -> tuple[bytes | None, str, str]:
    """Return the bytes of a picture, their SHA-256, and why there are none."""
    try:
        data = pictures.read(place)
    except OSError as error:
        return None, "", error.strerror or str(error) or type(error).__name__
    return data, hashlib.sha256(data).hexdigest(), ""


_STEP = "images through the model"
# Pictures whose outputs stand for a model's hidden state.
_PROBES = 16


def telling(
    progress: Callable[[str, int, int | None], None] | None, total: int
) -> Callable[[int], None]:
    """Return a counter of finished images that reports progress."""
    lock, done = threading.Lock(), 0

    def tell(images: int) -> None:
        nonlocal done
        with lock:
            done += images
            if progress is not None:
                progress(_STEP, done, total)

    return tell


@dataclass(frozen=True)
class Native:
    """Threads of this process, one for each copy of the model.

    Attributes
    ----------
    models : tuple of Extractor
        The same model, once on each device.
    decoding : Decoding
    """

    models: tuple[Extractor, ...]
    decoding: Decoding

    @property
    def info(self) -> ModelInfo:
        """The model's facts."""
        return self.models[0].info

    @property
    def names(self) -> Strings:
        """Names of the columns of a row."""
        return self.models[0].names

    def hidden_state(self, pictures: Pictures) -> Fields:
        """Return what stands for state that the model's facts don't show: some outputs."""
        if not self.models[0].has_hidden_state:
            return {}
        places = range(0, len(pictures), max(len(pictures) // _PROBES, 1))
        probes = Piece(0, pictures.take(places[:_PROBES]))
        data = Worker("", self.models[0], self.decoding)(probes).data
        return {"outputs_of_some": hashlib.sha256(data or b"").hexdigest()}

    def outcomes(
        self, key: str, pieces: Sequence[Piece], tell: Callable[[int], None]
    ) -> Generator[Outcome]:
        """Yield the outcome of each piece, in order, working ahead."""
        stop = threading.Event()
        threads = max(processors() // len(self.models), 1)
        workers = [
            Worker(key, model, self.decoding, threads, tell, stop.is_set) for model in self.models
        ]
        return map_workers(workers, Worker.__call__, pieces, stop)


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Remote:
    """Works on pieces in a process of the cluster, with a model that it loads itself."""

    def __init__(
        self, folder: str, model: str, options: RunOptions, request: Request, decoding: Decoding,
        threads: int,
    ) -> None:  # fmt: skip
        ignore_warnings()  # the process is the worker's own
        with suppress(OSError):  # Another machine may lack the folder that relative paths are in.
            os.chdir(folder)
        self._given, self._decoding, self._threads = (model, options, request), decoding, threads

    @cached_property
    def _model(self) -> Extractor:
        model, options, request = self._given
        try:
            return make_extractor(options.load(model), request)
        except EquipoiseError as error:
            raise ModelError(str(error)) from None  # others do not survive the way back

    def identity(self) -> tuple[ModelInfo, Strings]:
        """Return the model's facts and the names of the columns."""
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
        When the model is no name, there is no cluster, or it gives up.
    """

    def __init__(
        self, model: str | Model, options: RunOptions, request: Request, decoding: Decoding
    ) -> None:
        if not isinstance(model, str):
            raise RunError(
                "a loaded model stays in this process. To do: give the engine 'ray' the model's "
                "name"
            )
        try:
            import ray
            from ray.util import ActorPool
        except ImportError as error:
            raise MissingExtraError("ray", "ray") from error
        if not ray.is_initialized():
            # A cluster that Ray starts by itself asks the cloud which one it is: none is started.
            try:
                ray.init(address="auto")
            except ConnectionError as error:
                raise RunError(
                    "no cluster of Ray was found. To do: name its address in RAY_ADDRESS, start "
                    "one with 'ray start', or leave the engine at native, which uses all GPUs of "
                    "this machine"
                ) from error
        gpus = 0 if options.device == "cpu" else int(ray.cluster_resources().get("GPU", 0))
        nodes = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
        cpus = [count for count in nodes if count]
        cpus_of_worker = max(sum(cpus) // (2 * gpus), 1) if gpus else min(cpus)
        kind = ray.remote(num_cpus=cpus_of_worker, num_gpus=min(gpus, 1))(Remote)
        threads = max(int(cpus_of_worker), 1)
        arguments = (os.getcwd(), model, options, request, decoding, threads)  # noqa: PTH109 - text
        self._workers = [kind.remote(*arguments) for _ in range(gpus or len(cpus))]
        self._pool, self._kill = ActorPool(self._workers), ray.kill
        ((self.info, self.names),) = self._made(lambda worker, _: worker.identity.remote(), [0])

    def outcomes(
        self, key: str, pieces: Sequence[Piece], tell: Callable[[int], None]
    ) -> Generator[Outcome]:
        """Yield the outcome of each piece as soon as the piece is done."""
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
        """Yield the results of the workers for values.

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
            message = str(error).strip().partition("\n")[0]
            raise RunError(
                f"the cluster gave up: {type(error).__name__}: {message}. "
                "To do: look at its workers, and run again; finished parts stay"
            ) from error
