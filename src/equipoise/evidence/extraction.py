"""Extraction: what models give for images, kept in parts that are made once."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from equipoise import __version__
from equipoise.core import (
    DataError,
    Facts,
    Fields,
    InputError,
    ModelError,
    Progress,
    RunError,
    Strings,
    record,
)
from equipoise.core.files import table_bytes
from equipoise.core.types import FileFacts, Json
from equipoise.core.writing import write
from equipoise.evidence.pictures import (
    Decoding,
    Files,
    Pictures,
    check_pillow,
    quiet,
    same_pictures,
)
from equipoise.evidence.store import (
    Failure,
    Ledger,
    Outcome,
    crops_digest,
    failure_table,
    failures_of,
    hold_folder,
    input_of,
    key_of,
    parts_in,
    read_manifest,
    read_rows,
    write_manifest,
)
from equipoise.evidence.working import (
    Cluster,
    Extractor,
    Native,
    OptionQuestion,
    Request,
    RunOptions,
    load_copies,
    make_extractor,
    telling,
)
from equipoise.models.protocols import Model

ENGINES = ("native", "ray")
_PART, _PART_OF_ANSWERS = 256, 32


@record
class Extraction:
    """The outputs of a model for a set of images.

    Attributes
    ----------
    folder : Path
        Where it lies: ``<store>/<table>/<key>``.
    parts : tuple of Path
        Its Parquet files, in the order of ids.
    names : tuple of str
        What the numbers of a row of `scores` or `probabilities` are of.
    failures : pyarrow.Table
        `image_id`, `stage` (``read``, ``decode`` or ``model``) and `reason` of each image that
        has no row.
    info : mapping
        What the model is, as the manifest has it.
    inputs : mapping
        The evidence as an input of an audit: `sha256`, `bytes`, `rows`.
    computed : int
        Images the model ran on now; 0 when all was there.
    identical : tuple of tuples of str
        The ids that stand for one picture together: the same bytes, cut the same way. Each keeps
        its row.
    """

    folder: Path
    parts: tuple[Path, ...]
    names: Strings
    failures: pa.Table
    info: Facts
    inputs: Mapping[str, FileFacts]
    computed: int
    identical: tuple[Strings, ...] = ()

    @property
    def failed(self) -> dict[str, str]:
        """Stage at which each image failed, by its id."""
        columns = (self.failures[name].to_pylist() for name in ("image_id", "stage"))
        return dict(zip(*columns, strict=True))

    @cached_property
    def table(self) -> pa.Table:
        """One row per image without failure, in the order of ids.

        `image_id`, and `embedding`, `scores` or `probabilities` (a fixed-size list of float32),
        `answer` (a string) or `map` (a struct of `cells`, `frame` and `grid`).

        Raises
        ------
        RunError
            When a part has been damaged since.
        """
        return read_rows(self.parts)


@dataclass(frozen=True)
class ExtractionSettings:
    """ExtractionSettings of an extraction.

    Attributes
    ----------
    options : RunOptions
        How a model is loaded by its name.
    engine : str
        ``native`` (this machine) or ``ray`` (the cluster that Ray is connected to, or the one
        that RAY_ADDRESS names).
    part : int or None
        Images in one file: what is done again after a kill. None: 256, of answers 32, since these
        take long.
    max_failures : float
        Largest share of the images that may fail.
    decoding : Decoding
        How pictures become pixels.
    progress : callable or None
        Progress callback: (step, images done, all images).
    """

    options: RunOptions = field(default_factory=RunOptions)
    engine: str = "native"
    part: int | None = None
    max_failures: float = 0.05
    decoding: Decoding = field(default_factory=Decoding)
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Check the settings.

        Raises
        ------
        InputError
            When one is out of range.
        """
        if self.engine not in ENGINES:
            raise InputError(f"engine is {self.engine!r}; expected one of {', '.join(ENGINES)}")
        if (self.part is not None and self.part < 1) or not 0 <= self.max_failures <= 1:
            raise InputError(
                f"part is {self.part} and max_failures {self.max_failures:g}; expected 1 or more, "
                "and a share from 0 to 1"
            )


def extract_embeddings(
    pictures: Pictures,
    model: str | Model | Extractor,
    store: Path,
    *,
    features: bool = False,
    settings: ExtractionSettings = ExtractionSettings(),
) -> Extraction:
    """Embed images with a dual encoder, or with the features of a classifier.

    What lies in the store for the same images, model, decoding and crops is read; what is missing
    is computed. A killed run loses no part that was finished.

    Parameters
    ----------
    pictures : Pictures
        n images.
    model : str, DualEncoder or Classifier
        A name for `load_model`, or a loaded model (with the native engine).
    store : Path
        Folder of the evidence.
    features : bool
        Take a classifier's features, also of a model that embeds images as well.
    settings : ExtractionSettings

    Returns
    -------
    Extraction
        With `embedding`: float32, as the model gives it, not normalised.

    Raises
    ------
    InputError
        When a setting is out of range.
    ModelError
        When the model cannot be loaded, gives something else, or fails on every image.
    DataError
        When more images fail than `max_failures` allows, or all.
    RunError
        When the store cannot be written, or another process writes it.
    """
    request = Request("embeddings", features=features)
    return extract_request(request, pictures, model, store, settings)


def extract_scores(
    pictures: Pictures,
    texts: Sequence[str],
    model: str | Model | Extractor,
    store: Path,
    settings: ExtractionSettings = ExtractionSettings(),
) -> Extraction:
    """Score every image with every text by an image-text matching model.

    Parameters
    ----------
    pictures : Pictures
        n images.
    texts : sequence of m str
        Each once.
    model : str or PairScorer
    store : Path
    settings : ExtractionSettings
        Errors as of `extract_embeddings`.

    Returns
    -------
    Extraction
        With `scores`: m probabilities of a match, higher is better.
    """
    request = Request("scores", texts=tuple(texts))
    return extract_request(request, pictures, model, store, settings)


def extract_probabilities(
    pictures: Pictures,
    model: str | Model | Extractor,
    store: Path,
    settings: ExtractionSettings = ExtractionSettings(),
) -> Extraction:
    """Classify images.

    Parameters
    ----------
    pictures : Pictures
        n images.
    model : str or Classifier
    store : Path
    settings : ExtractionSettings
        Errors as of `extract_embeddings`.

    Returns
    -------
    Extraction
        With `probabilities`, one for each of `names`.
    """
    return extract_request(Request("probabilities"), pictures, model, store, settings)


def extract_answers(
    pictures: Pictures,
    question: str,
    model: str | Model | Extractor,
    store: Path,
    settings: ExtractionSettings = ExtractionSettings(),
) -> Extraction:
    """Ask a question about every image.

    Parameters
    ----------
    pictures : Pictures
        n images.
    question : str
        Empty for a caption, of a model that can.
    model : str or Answerer
    store : Path
    settings : ExtractionSettings
        Errors as of `extract_embeddings`.

    Returns
    -------
    Extraction
        With `answer`, as the model wrote it.
    """
    return extract_request(Request("answers", question=question), pictures, model, store, settings)


def extract_choices(
    pictures: Pictures,
    questions: Mapping[str, OptionQuestion],
    model: str | Model | Extractor,
    store: Path,
    settings: ExtractionSettings = ExtractionSettings(),
    *,
    letters: bool = True,
) -> Extraction:
    """Ask about every image a question of its own, with lettered options.

    Parameters
    ----------
    pictures : Pictures
        n images.
    questions : mapping of str to OptionQuestion
        By the id of the image.
    model : str or Answerer
    store : Path
    settings : ExtractionSettings
    letters : bool
        Whether to ask for probabilities of the letters, of a model that has them.

    Returns
    -------
    Extraction
        With `choice`: the answer as the model wrote it, and the probabilities of the letters,
        null where the model gave none.
    """
    request = Request("choices", questions=questions, letters=letters)
    return extract_request(request, pictures, model, store, settings)


# Raised whenever the same images, model and settings would give other files than before.
_FORMAT = 1
# Pictures with several ids that the manifest names.
_FIRST = 20


def _default_part(table: str) -> int:
    """Return how many images a file has: fewer of answers, which take long."""
    return _PART_OF_ANSWERS if table in ("answers", "choices") else _PART


def extract_request(
    request: Request,
    pictures: Pictures,
    model: str | Model | Extractor,
    store: Path,
    settings: ExtractionSettings,
) -> Extraction:
    """Return the outputs of a request: stored parts, and missing parts computed.

    Raises
    ------
    ModelError, DataError, RunError
        See `extract_embeddings`.
    """
    check_pillow()
    part = settings.part or _default_part(request.table)
    settings = replace(settings, part=part)
    engine = _engine(settings, model, request)
    # All that decides what the parts hold but the pictures themselves.
    facts = _facts(request, pictures, settings)
    facts |= {"model": engine.info.key, "names": list(engine.names)}
    if isinstance(engine, Native):
        facts |= engine.hidden_state(pictures)
    key = key_of(facts)
    folder = Path(store) / request.table / key[:16]
    info = asdict(engine.info)
    versions = {name: version(name) for name in ("pillow", "pyarrow")}
    versions["equipoise"] = __version__
    about: dict[str, Json] = {
        "key": facts,
        "model": info,
        "images": len(pictures),
        "versions": versions,
    }
    ledger = Ledger(folder, pictures, part)
    with hold_folder(folder) as writable, quiet():
        if writable:
            write_manifest(folder, about | {"whole": False})
        done = _done(ledger, engine, key, settings)
        failures = _failures(done, pictures)
        rows = len(pictures) - len(failures)
        identical = same_pictures(pictures, b"".join(outcome.contents for outcome in done))
        if writable:
            ledger.drop_others(done)
            _write_failures(folder, failures)
            stages = Counter(sorted(failure.stage for failure in failures))
            counts: dict[str, Json] = {"rows": rows, "failures": stages}
            if identical:
                shared = {"images": sum(map(len, identical)), "pictures": len(identical)}
                counts["identical"] = shared | {"first": [[*ids] for ids in identical[:_FIRST]]}
            write_manifest(folder, about | {"whole": True} | counts)
        parts = tuple(ledger.path(outcome) for outcome in done)
        inputs = {f"evidence/{request.table}/{key[:16]}": input_of(parts, rows)}
    computed = sum(outcome.computed for outcome in done)
    return Extraction(
        folder, parts, engine.names, failure_table(failures), info, inputs, computed, identical
    )


def _engine(
    settings: ExtractionSettings, model: str | Model | Extractor, request: Request
) -> Native | Cluster:
    """Return the engine that settings name, with a model for the request.

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
    models = load_copies(model, options, RunOptions.load)
    return Native(tuple(make_extractor(loaded, request) for loaded in models), settings.decoding)


def _facts(request: Request, pictures: Pictures, settings: ExtractionSettings) -> Fields:
    """Return the part of a folder's key that doesn't depend on the model."""
    return {
        "format": _FORMAT,
        "table": request.table,
        "question": request.question,
        "features": request.features,
        "decoding": settings.decoding.facts,
        "ids": key_of(pictures.ids.tolist()),
        "crops": crops_digest(pictures),
        "part": settings.part,
        **_facts_of_questions(request, pictures),
        **request.facts,
    }


def _facts_of_questions(request: Request, pictures: Pictures) -> Fields:
    """Return what decides choices; nothing of other tables."""
    if request.table != "choices":
        return {}
    questions: list[Json] = [[*request.questions[image_id]] for image_id in pictures.ids.tolist()]
    return {"questions": key_of(questions), "letters": request.letters}


def _done(
    ledger: Ledger, engine: Native | Cluster, key: str, settings: ExtractionSettings
) -> list[Outcome]:
    """Return the outcome of every part, in order.

    Raises
    ------
    ModelError, DataError
        When too many images fail.
    RunError
        When a part cannot be written.
    """
    n = len(ledger.pictures)
    allowed = math.floor(settings.max_failures * n + 1e-9)
    done: list[Outcome] = []
    failed = n_unasked = 0
    tell = telling(settings.progress, n)
    with closing(engine.outcomes(key, [*ledger.pieces()], tell)) as outcomes:
        for outcome in outcomes:
            done.append(ledger.keep(outcome))
            unasked = sum(failure.is_unasked for failure in done[-1].failures)
            failed += len(done[-1].failures) - unasked
            n_unasked += unasked
            if failed > allowed:
                break
    done.sort(key=lambda outcome: outcome.number)
    if failed <= allowed and failed + n_unasked < n:
        return done
    ledger.forget(done)
    failures = _failures(done, ledger.pictures)
    if n_unasked and failed <= allowed:
        raise ModelError(
            f"{engine.info.name}: none of {n} images has an answer; {failures[0].reason}. To do: "
            "raise 'service.budget'"
        )
    failures = [failure for failure in failures if not failure.is_unasked]
    with suppress(RunError):  # the error that is raised says more
        _write_failures(ledger.folder, failures)
    first_failure = f"the first is {failures[0].image_id!r}: {failures[0].reason}"
    n_done = sum(ledger.size(outcome.number) for outcome in done)
    if len(failures) == n_done and all(failure.stage == "model" for failure in failures):
        raise ModelError(
            f"{engine.info.name} failed on each of {len(failures)} images; {first_failure}. "
            "To do: run the model on one of them to see its error"
        )
    stages = Counter(sorted(failure.stage for failure in failures))
    file = ledger.folder / "failures.parquet"
    by_stage = ", ".join(f"{stage} {count}" for stage, count in stages.items())
    raise DataError(
        f"{len(failures)} of {n} images failed ({by_stage}), and max_failures allows {allowed}; "
        f"{first_failure}",
        file=ledger.pictures.name,
        fix=f"see {file}. {_advice_on(stages)}, or raise max_failures",
    )


def _advice_on(stages: Collection[str]) -> str:
    """Return a remedy for the failures of some stages."""
    remedies = {
        "cut": "for cut answers raise service.max_tokens",
        "request": "for failed requests check the server and run again",
    }
    advice = "; ".join(text for stage, text in remedies.items() if stage in stages)
    if {*stages} - {*remedies}:
        files = "where no file can be read, check the folder that paths start from ('root'); else "
        advice = "; ".join(filter(None, (advice, f"{files}repair images")))
    return advice[:1].upper() + advice[1:]


def _failures(done: Sequence[Outcome], pictures: Pictures) -> list[Failure]:
    """Return every failure; failures to read name the path.

    Parts do not say it: they hold for the same pictures in another folder.
    """
    place = pictures.places
    failures_with_place = []
    for outcome in done:
        for failure in outcome.failures:
            reason = failure.reason
            if failure.stage == "read":
                reason += f" ({pictures.where(place[failure.image_id])})"
            failures_with_place.append(replace(failure, reason=reason))
    return failures_with_place


def _write_failures(folder: Path, failures: Sequence[Failure]) -> None:
    write(folder / "failures.parquet", table_bytes(failure_table(failures)))


@dataclass(frozen=True)
class Pending:
    """Stored and missing outputs of a model for a set of images.

    Attributes
    ----------
    images : int
        In the set.
    present : int
        Of them with a row in finished parts. Whether pictures have changed since is not looked at.
    failed : int
        With a failure in such parts, which is kept and not tried again.
    missing : int or None
        Whose file is not there now; None where pictures are no files of their own.
    places : tuple of int
        Of the images that have neither, in order.
    """

    images: int
    present: int
    failed: int
    missing: int | None
    places: tuple[int, ...] = ()

    @property
    def to_do(self) -> int:
        """Images that the model still has to run on."""
        return self.images - self.present - self.failed


def pending(
    pictures: Pictures,
    model: str,
    table: str,
    store: Path,
    *,
    key: str | None = None,
    part: int | None = None,
    **request: Any,
) -> Pending:
    """Return the stored and the missing outputs of an extraction.

    Parameters
    ----------
    pictures : Pictures
    model : str
        The name for `load_model`; evidence is looked for by it where `key` is not given.
    table : str
        ``embeddings``, ``scores``, ``probabilities``, ``answers`` or ``choices``.
    store : Path
        Where evidence lies.
    key : str, optional
        `ModelInfo.key` of the model, whatever its name.
    part : int, optional
        As in the extraction.
    **request
        Texts, question, features, questions and letters, as in the extraction.

    Returns
    -------
    Pending

    Raises
    ------
    MissingExtraError
        When Pillow is not installed, which the extraction needs.
    """
    check_pillow()
    resolved_request = Request(table, **request)
    settings = ExtractionSettings(part=part or _default_part(table))
    conditions = _facts(resolved_request, pictures, settings)
    if table == "scores":
        conditions["names"] = [*resolved_request.texts]
    best = _Finished(0, 0, frozenset())
    for manifest in sorted(Path(store).glob(f"{table}/*/manifest.json")):
        facts = read_manifest(manifest.parent)
        about = facts.get("key", {})
        identifier = facts.get("model", {}).get("name") if key is None else about.get("model")
        if identifier == (model if key is None else key) and conditions.items() <= about.items():
            finished = _finished(manifest.parent, pictures, settings.part or 1)
            best = max(best, finished, key=lambda finished: len(finished.places))
    n_missing = len(pictures.source.missing) if isinstance(pictures.source, Files) else None
    places = tuple(place for place in range(len(pictures)) if place not in best.places)
    return Pending(len(pictures), best.rows, best.failures, n_missing, places)


class _Finished(NamedTuple):
    """Rows and failures of the parts of a folder.

    Attributes
    ----------
    rows, failures : int
    places : frozenset of int
        Of their images, but for those that the model wasn't asked about.
    """

    rows: int
    failures: int
    places: frozenset[int]


def _finished(folder: Path, pictures: Pictures, part: int) -> _Finished:
    """Return what those parts have that can be read."""
    counts = {}
    for number, _, path in parts_in(folder):
        with suppress(OSError, ValueError, pa.ArrowException):
            # Of one number the last is taken, as in the ledger.
            failures = failures_of(path)
            unasked = {pictures.places[f.image_id] for f in failures if f.is_unasked}
            members = {*range(number * part, min((number + 1) * part, len(pictures)))} - unasked
            counts[number] = pq.read_metadata(path).num_rows, len(failures) - len(unasked), members
    rows, failed, places = (
        [*column] for column in zip((0, 0, {*()}), *counts.values(), strict=True)
    )
    return _Finished(sum(rows), sum(failed), frozenset[int]().union(*places))
