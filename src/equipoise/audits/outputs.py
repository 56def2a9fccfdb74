"""Models of a config: their outputs from a live run, or what a run would produce."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.audits.asking import Questions, ask_by_picture
from equipoise.audits.bills import Bill, bill_of
from equipoise.audits.config import AuditConfig
from equipoise.audits.images import AuditImages, open_images
from equipoise.audits.model_cache import look_up, open_model, preview_of, rested
from equipoise.audits.notes import Note
from equipoise.config.fields import GeneratorSection, RunConfig, called, given_keys
from equipoise.config.images import PicturesConfig
from equipoise.core import (
    ConfigError,
    DataError,
    Facts,
    Floats,
    InputError,
    ModelError,
    Objects,
    Progress,
)
from equipoise.counterfactuals import Generated, GenerationSettings, generate, plan
from equipoise.counterfactuals.parts import Request
from equipoise.data import Items, ItemSource, load_items
from equipoise.data.labels import Coded, Content, Outputs
from equipoise.data.problems import counted
from equipoise.evidence import (
    Extraction,
    ExtractionSettings,
    OptionQuestion,
    Pending,
    Pictures,
    Prompts,
    RunOptions,
    embed_classes,
    extraction,
    pending,
    prompts,
)
from equipoise.evidence.pictures import Files
from equipoise.models.choosing import LETTERS
from equipoise.models.protocols import DESCRIPTIONS, Offer, offer_of
from equipoise.models.registry import Preview, find_adapter
from equipoise.models.runtimes import gpus
from equipoise.models.served import ServedModel
from equipoise.models.service import Address, Interface, Service
from equipoise.models.spending import Usage, estimate_tokens, estimate_usage

T = TypeVar("T")

# Numbers of a vector of a model that was never loaded, and bytes of each.
_DIMENSION, _BYTES = 512, 4

_ASKED = ("answers", "choices")
"""Outputs that a model is asked for with a question."""

IMAGES = "images"
"""The set of images that findings are of."""

NOT_YET_KNOWN = "(not yet known)"
"""The label or answer of every item in a dry run."""


class Models:
    """Reads tables and runs models for an audit, and records both.

    What the store has is read, the rest is computed and kept there. A kind calls the same methods
    in a plan, of a `DryRun`, which returns stand-ins of the right shape and counts what is to do.

    Parameters
    ----------
    config : AuditConfig
    base : Path
        Folder that relative paths of the config start from.
    progress : callable, optional
        Called with the step, the number done and the total.

    Attributes
    ----------
    outputs : list of Outputs
        Every output that was asked for, in order.
    sets : dict of str to AuditImages
        Every set of images that was read, by name.
    sent : list of Note
        How many pictures leave for which other machines.
    bills : dict of str to Bill
        What served models take, by model.
    to_send : dict of str to Usage
        What the requests of a plan are estimated to take, by model.
    dry : bool
        Whether no model runs.
    """

    dry: ClassVar[bool] = False

    def __init__(self, config: AuditConfig, base: Path, progress: Progress | None = None) -> None:
        self.config, self.base, self.progress = config, base, progress
        self.outputs: list[Outputs] = []
        self.sets: dict[str, AuditImages] = {}
        self.tables: dict[str, Any] = {}
        self.sent: list[Note] = []
        self.bills: dict[str, Bill] = {}
        self.to_send: dict[str, Usage] = {}
        self._loaded: dict[tuple[str, RunOptions], Any] = {}

    @property
    def store(self) -> Path:
        """Folder of the evidence."""
        return self.base / self.config.extraction.store

    def read_images(
        self,
        section: PicturesConfig,
        columns: Sequence[str] = (),
        *,
        name: str = "images",
        place: str = "data.images",
    ) -> AuditImages:
        """Read a set of images under its rules, once.

        Parameters
        ----------
        section : PicturesConfig
        columns : sequence of str
            Columns that the audit needs.
        name : str
            What the set is called in the manifest and in failures.
        place : str
            The section's place in the config, for errors.
        """
        if name not in self.sets:
            self.sets[name] = open_images(section, self.base, columns=columns, place=place)
        return self.sets[name]

    def read_items(
        self, section: PicturesConfig, columns: Sequence[str]
    ) -> tuple[AuditImages, Items]:
        """Read the images under their rules, with columns of their table, once."""
        images = self.read_images(section, columns)
        source = self.source(images, columns)
        return images, self.once("images", lambda: load_items(source, subject="images"))

    def source(self, images: AuditImages, columns: Sequence[str]) -> ItemSource:
        """Return the table of images with the columns that the config makes groups of."""
        config = self.config
        attributes = [name for name in config.group_columns if name in columns]
        return images.source(
            self.base, columns, attributes=attributes, levels=config.declared_levels
        )

    @property
    def read_counts(self) -> list[Facts]:
        """Counts of every table that was read."""
        tables = list[object]()
        for table in self.tables.values():
            tables += table.values() if isinstance(table, Mapping) else [table]
        counts = [getattr(table, "counts", {}) for table in tables]
        return [*counts, *(images.counts.get("read", {}) for images in self.sets.values())]

    def once(self, name: str, read: Callable[[], T]) -> T:
        """Return a table by name, read once for the dry run and the audit."""
        if name not in self.tables:
            self.tables[name] = read()
        table: T = self.tables[name]
        return table

    def _offer(self, section: RunConfig, interface: Interface) -> Offer | None:
        """Return a model's capability, or None if it is unknown."""
        return offer_of(self.opened(section, interface))

    def capability(self, name: str, section: RunConfig, *allowed: Offer) -> Offer:
        """Return a model's capability; in a dry run an unknown one is the first allowed.

        Raises
        ------
        ConfigError
            When the model can do none of what is allowed; it names the key `models.<name>.model`.
        """
        with self._running(name):
            offer = self._offer(section, "chat" if allowed == ("answerer",) else "embeddings")
        if offer in allowed or (offer is None and self.dry):
            return offer or allowed[0]
        raise ConfigError(
            f"{self.key(name)}: {section.called} is "
            f"{DESCRIPTIONS[offer] if offer else 'no model'}; an audit of "
            f"{self.config.audit} takes {' or '.join(map(DESCRIPTIONS.__getitem__, allowed))}"
        )

    def embed_texts(
        self, name: str, section: RunConfig, prompts: Prompts, *, on: str = "queries"
    ) -> Outputs:
        """Embed named prompts, each name as the mean of the unit vectors of its prompts."""
        self.capability(name, section, "encoder")
        self.open_bill(name, section)
        self.note_sent(name, section, f"{len(prompts.texts)} texts")
        with self._running(name):
            progress = self.progress_of(f"{name}, {on}")
            vectors, texts = embed_classes(
                prompts, self.opened(section), self.store, progress=progress
            )
        return self.keep(
            name, "embeddings", on, prompts.names, values=np.asarray(vectors, np.float32),
            requested=np.array(prompts.names, object), info=texts.info, inputs=texts.inputs,
        )  # fmt: skip

    def embed_images(
        self, name: str, section: RunConfig, pictures: Pictures, *, on: str = "images"
    ) -> Outputs:
        """Embed images with a dual encoder, or with the features of a classifier."""
        features = self.capability(name, section, "encoder", "classifier") == "classifier"
        self.open_bill(name, section)
        self.note_sent(name, section, f"{len(pictures)} pictures")
        return self._of_images(name, section, "embeddings", pictures, on, features=features)

    def score_pairs(
        self,
        name: str,
        section: RunConfig,
        pictures: Pictures,
        texts: Sequence[str],
        *,
        on: str = "images",
    ) -> Outputs:
        """Score each image with each text."""
        self.capability(name, section, "scorer")
        unique = tuple(dict.fromkeys(texts))
        return self._of_images(name, section, "scores", pictures, on, texts=unique)

    def predict(
        self,
        name: str,
        section: RunConfig,
        pictures: Pictures,
        *,
        expected: Sequence[str] = (),
    ) -> Outputs:
        """Return a probability per class; a dry run without known classes takes `expected`."""
        self.capability(name, section, "classifier")
        request = {"expected": tuple(expected)}
        return self._of_images(name, section, "probabilities", pictures, "images", **request)

    def answer(
        self,
        name: str,
        section: RunConfig,
        pictures: Pictures,
        question: str,
        *,
        on: str = "images",
    ) -> Outputs:
        """Ask a question about each image."""
        self.capability(name, section, "answerer")
        self.open_bill(name, section)
        self.note_sent(name, section, f"{len(pictures)} pictures")
        self._ask_in_random_order(name, section, pictures, question)
        return self._of_images(name, section, "answers", pictures, on, question=question)

    def _ask_in_random_order(
        self, name: str, section: RunConfig, pictures: Pictures, question: str
    ) -> None:
        """Ask a model with a budget, so that groups lack about the same share at its end.

        Parts of the evidence, which are in the order of ids, get the replies that are kept.
        """
        if self.dry or not self._has_budget(name):
            return
        model = self.opened(section, "chat")
        state = pending(
            pictures, section.called, "answers", self.store, key=model.info.key,
            part=self.config.extraction.part, question=question,
        )  # fmt: skip
        if state.to_do:
            questions = Questions(pictures, [[question]] * len(pictures))
            self._ask_by_picture(name, section, questions, letters=False)

    def choose(
        self,
        name: str,
        section: RunConfig,
        pictures: Pictures,
        questions: Mapping[str, OptionQuestion],
        *,
        letters: bool,
        on: str,
    ) -> Outputs:
        """Ask about each image a question of its own, with lettered options."""
        self.capability(name, section, "answerer")
        self.open_bill(name, section)
        self.note_sent(name, section, f"{len(pictures)} pictures")
        request = {"questions": questions, "letters": letters}
        return self._of_images(name, section, "choices", pictures, on, **request)

    def ask_ahead(
        self,
        name: str,
        section: RunConfig,
        pictures: Pictures,
        requests: Sequence[Mapping[str, OptionQuestion]],
        *,
        letters: bool,
    ) -> None:
        """Ask a model with a budget all about one image before the next, and keep the replies.

        So a budget ends between images, and not between the requests that `choose` makes.
        """
        self.capability(name, section, "answerer")
        self.open_bill(name, section)
        if self.dry or not self._has_budget(name):
            return
        self.note_sent(name, section, f"{len(pictures)} pictures")
        texts = [
            [questions[image_id].text for questions in requests if image_id in questions]
            for image_id in pictures.ids.tolist()
        ]
        self._ask_by_picture(name, section, Questions(pictures, texts), letters=letters)

    def _has_budget(self, name: str) -> bool:
        return name in self.bills and self.bills[name].service.budget is not None

    def _ask_by_picture(
        self, name: str, section: RunConfig, questions: Questions, *, letters: bool
    ) -> None:
        progress, bill = self.progress_of(name), self.bills[name]
        sizes = partial(questions.sizes, questions.order, bill.service.longest_side)
        with self._running(name):
            ask_by_picture(
                self.opened(section, "chat"), questions, letters=letters,
                most_failures=self.config.extraction.max_failures,
                progress=bill.progress(progress, sizes) if progress else None,
            )  # fmt: skip

    def open_bill(self, name: str, section: RunConfig | GeneratorSection) -> None:
        """Count the usage of a model from now on, if it is served."""
        bill = bill_of(name, section, self.options_of(section).service)
        if bill is not None:
            self.bills.setdefault(name, bill)

    def plan_requests(self, name: str, usage: Usage) -> Facts:
        """Add requests to those that a plan is for, and return the facts on them."""
        self.to_send[name] = self.to_send.get(name, Usage()) + usage
        return self.bills[name].planned(usage)

    @property
    def plan_notes(self) -> Iterator[Note]:
        """Notes on what all requests to each served model would take."""
        for name, usage in self.to_send.items():
            yield from self.bills[name].plan_notes(usage)

    def note_sent(self, name: str, section: RunConfig | GeneratorSection, content: str) -> None:
        """Note what leaves this machine for a served model, such as "12 pictures"."""
        prefix, _, target = section.called.partition(":")
        address = Address.of(target) if prefix == "served" else None
        if address is not None and not address.is_here:
            verb = "would be" if self.dry else "were"
            self.sent.append(
                Note(name, f"{content} {verb} sent to {address.host}, but for kept answers.")
            )
            if self.progress is not None:
                self.progress(f"{name}: sending to {address.host}", 0, None)

    def options_of(
        self, section: RunConfig | GeneratorSection, interface: Interface = "embeddings"
    ) -> RunOptions:
        """Return how a model is loaded; a served one keeps its answers in the store."""
        options = section.options(self.config.extraction).keeping_replies(self.store)
        if options.service is None:
            return options
        return replace(options, service=replace(options.service, interface=interface))

    @contextmanager
    def _running(self, name: str) -> Iterator[None]:
        """Prefix a model's error with its key; an interrupted run loses nothing."""
        try:
            yield
        except ModelError as error:
            key = self.key(name)
            if not str(error).startswith(f"{key}: "):
                error.args = (f"{key}: {error}",)
            raise
        except KeyboardInterrupt as error:
            # As the kind it is: the command line tells Ctrl-C from a polite kill.
            raise type(error)(
                f"interrupted; the outputs so far are kept in {self.store}, and the same command "
                "continues from there"
            ) from None

    def key(self, name: str) -> str:
        """Return the key of the config that names a model."""
        return self.config.model_key(name)

    def keep(
        self, name: str, content: Content, on: str, ids: Any, *, source: str = "", **fields: Any
    ) -> Outputs:
        """Record a model's outputs for the plan and the manifest, and return them.

        Parameters
        ----------
        name, content, on, source : str
            As `Outputs` has them; the source is the key of the model unless given.
        ids : sequence, array or column of str
        **fields
            Of `Outputs`.
        """
        texts = ids.tolist() if isinstance(ids, np.ndarray) else ids
        outputs = Outputs(
            model=name, content=content, source=source or self.key(name), on=on,
            ids=pl.Series("", texts, dtype=pl.String).alias(""), **fields,
        )  # fmt: skip
        self.outputs.append(outputs)
        return outputs

    def opened(self, section: RunConfig, interface: Interface = "embeddings") -> Any:
        """Return the model of a section; a served one at the interface that it is needed for.

        The weights of one named model at a time are in memory: those of the others are released,
        and loaded again when they are needed again.
        """
        if not isinstance(section.model, str):
            return section.model
        model_key = section.located(self.base), self.options_of(section, interface)
        for loaded_key in self._loaded.keys() - {model_key}:
            name, options = loaded_key
            self._loaded[loaded_key] = rested(self._loaded[loaded_key], partial(options.load, name))
        if model_key not in self._loaded:
            if self.progress is not None:
                self.progress(f"opening {section.model}", 0, None)
            self._loaded[model_key] = open_model(*model_key, self.store)
        return self._loaded[model_key]

    def _of_images(
        self,
        name: str,
        section: RunConfig,
        content: Content,
        pictures: Pictures,
        on: str,
        **request: Any,
    ) -> Outputs:
        extract, options = getattr(extraction, f"extract_{content}"), self.config.extraction
        interface: Interface = "chat" if content in _ASKED else "embeddings"
        model = self.opened(section, interface)
        request.pop("expected", None)
        run_options = RunOptions()
        # A model that was wanted on any GPU can run on several.
        spreads = options.engine == "ray" or (model.info.device == "cuda" and gpus() > 1)
        if isinstance(section.model, str) and spreads:
            # Each worker opens a model of its own.
            model = section.located(self.base.absolute())
            run_options = self.options_of(section, interface)
        progress = self._progress_with_cost(name, content, pictures, on, request)
        with self._running(name):
            settings = ExtractionSettings(
                options=run_options, engine=options.engine, part=options.part,
                max_failures=options.max_failures, progress=progress,
            )  # fmt: skip
            run: Extraction = extract(
                pictures, model=model, store=self.store, settings=settings, **request
            )
        column = run.table.column(run.table.num_columns - 1).combine_chunks()
        labels = values = None
        if content == "answers":
            labels = Coded.of(pl.Series("", column, dtype=pl.String)).column()
        elif content == "choices":
            answers = pl.Series("", column.field("answer"), dtype=pl.String)
            labels = Coded.of(answers).column()
            values = _letter_columns(column.field("probabilities"))
        else:
            numbers = column.flatten().to_numpy(zero_copy_only=False)
            values = numbers.reshape(len(column), -1)
        return self.keep(
            name, content, on, run.table["image_id"], labels=labels, values=values, names=run.names,
            requested=pictures.ids, info=run.info, inputs=run.inputs,
            failed=run.failed, identical=run.identical,
        )  # fmt: skip

    def _progress_with_cost(
        self, name: str, content: Content, pictures: Pictures, on: str, request: Facts
    ) -> Progress | None:
        """Return a progress callback, which adds the cost where the model is served."""
        progress, bill = self.progress_of(f"{name}, {on}"), self.bills.get(name)
        if progress is None or bill is None:
            return progress
        if content not in _ASKED:
            return bill.progress(progress)
        # With a budget all requests were made before.
        n = 0 if bill.service.budget is not None else len(pictures)
        questions = _questions_of(pictures, request)
        return bill.progress(
            progress, partial(questions.sizes, range(n), bill.service.longest_side)
        )

    def progress_of(self, about: str) -> Progress | None:
        """Return a progress callback that prefixes steps with a label."""
        progress = self.progress
        if progress is None:
            return None
        return lambda step, done, total: progress(f"{about}: {step}", done, total)


def _questions_of(pictures: Pictures, request: Facts) -> Questions:
    """Return the question about each picture that a request has."""
    questions = request.get("questions")
    if questions is None:
        return Questions(pictures, [[request["question"]]] * len(pictures))
    return Questions(pictures, [[questions[name].text] for name in pictures.ids.tolist()])


def _letter_columns(lists: pa.ListArray) -> Floats:
    """Return lists of numbers as a matrix; NaN after the end of a list, and without one."""
    matrix = np.full((len(lists), len(LETTERS)), np.nan)
    for row, numbers in enumerate(lists.to_pylist()):
        matrix[row, : len(numbers or ())] = numbers or ()
    return matrix


class DryRun(Models):
    """Return stand-ins instead of running models, and record the remaining work.

    Parameters
    ----------
    live : Models, optional
        Opens models, so that each is what it is and not what its name promises, and shares the
        tables and images that were read. Without it no model is opened.
    """

    dry = True

    def __init__(self, config: AuditConfig, base: Path, live: Models | None = None) -> None:
        super().__init__(config, base)
        self._live = live
        if live is not None:
            self.sets, self.tables = live.sets, live.tables
        self.missing_files = list[Note]()
        self._looked_up: dict[tuple[str, RunOptions], tuple[str | None, Preview]] = {}

    def _offer(self, section: RunConfig, interface: Interface) -> Offer | None:
        return self._known(section, interface)[1].offer

    def embed_texts(
        self, name: str, section: RunConfig, prompts: Prompts, *, on: str = "queries"
    ) -> Outputs:
        """Stand in for embeddings of texts."""
        self.capability(name, section, "encoder")
        self.open_bill(name, section)
        self.note_sent(name, section, f"{len(prompts.texts)} texts")
        width = self._known(section, "embeddings")[1].dimension
        # How many of them the store has is not looked up.
        pending = {
            "runs": called(section.located(self.base)), "items": len({*prompts.texts}),
            "in_store": None, "failed_before": None, "to_do": None, "files_missing": None,
            "numbers": width, "bytes": None,
        }  # fmt: skip
        ids = np.array(prompts.names, dtype=object)
        return self._stand_in(name, on, "embeddings", ids, pending, width or _DIMENSION)

    def _of_images(
        self,
        name: str,
        section: RunConfig,
        content: Content,
        pictures: Pictures,
        on: str,
        **request: Any,
    ) -> Outputs:
        key, preview = self._known(section, "chat" if content in _ASKED else "embeddings")
        names = request.get("texts", ())
        if content == "probabilities":
            names = preview.labels or request.pop("expected")
            request = {"texts": ()}
        numbers = preview.dimension if content == "embeddings" else len(names)
        runs = called(section.located(self.base))
        state = pending(
            pictures, runs, content, self.store, key=key,
            part=self.config.extraction.part, **request,
        )  # fmt: skip
        self._check_files(name, pictures, state)
        about = {
            "runs": runs, "items": state.images, "in_store": state.present,
            "failed_before": state.failed, "to_do": state.to_do, "files_missing": state.missing,
            "numbers": numbers or None,
            "bytes": state.to_do * numbers * _BYTES if numbers else None,
        }  # fmt: skip
        if name in self.bills and content in _ASKED:
            about |= self._plan_questions(name, _questions_of(pictures, request), state)
        elif name in self.bills:
            bill = self.bills[name]
            usage = estimate_usage("", (bill.service.longest_side,), 0)
            about |= self.plan_requests(name, bill.estimate(state.to_do, usage))
        width = numbers or (_DIMENSION if content == "embeddings" else 0)
        return self._stand_in(name, on, content, pictures.ids, about, width, names=names)

    def _check_files(self, name: str, pictures: Pictures, state: Pending) -> None:
        """Refuse images whose files are all missing, and note some missing ones.

        Raises
        ------
        DataError
            With the path of the first.
        """
        if not (state.missing and state.to_do and isinstance(pictures.source, Files)):
            return
        first_missing = pictures.source.missing[0]
        text = (
            f"{counted(state.missing, 'file')} of {counted(state.images, 'image')} "
            f"{'is' if state.missing == 1 else 'are'} missing; the first is "
            f"{pictures.source.where(first_missing)!r}"
        )
        if state.missing == state.images == state.to_do:
            raise DataError(
                text, file=pictures.name, expected="the files of the images",
                fix="correct the folder that paths start from (`root`), or the paths",
            )  # fmt: skip
        self.missing_files.append(Note(name, text))

    def _plan_questions(self, name: str, questions: Questions, state: Pending) -> Facts:
        """Return the facts of a plan on questions: without an answer yet, and their usage."""
        bill, places = self.bills[name], [*state.places]
        if self._live is None:
            model = ServedModel(bill.address, bill.service)
            places = questions.unanswered(places, model, bill.answered())
        usage = None
        if bill.spent().is_known:
            usage = bill.expected(questions.sizes(places, bill.service.longest_side))
        if usage is None:
            texts = [text for of_picture in questions.texts for text in of_picture]
            usage = bill.usage_of_questions({*texts}).times(len(places))
        in_store = state.images - state.failed - len(places)
        facts = {"in_store": in_store, "to_do": len(places)}
        return {**facts, **self.plan_requests(name, usage)}

    def _stand_in(
        self,
        name: str,
        on: str,
        content: Content,
        ids: Objects,
        pending: Mapping[str, Any],
        width: int,
        *,
        names: tuple[str, ...] = (),
    ) -> Outputs:
        # Rows overlap in memory, so that they differ and cost little more than one.
        seed = [*f"{name}, {on}".encode()]
        numbers = np.random.default_rng(seed).random(len(ids) + max(1, width), dtype=np.float32)
        rows = np.lib.stride_tricks.sliding_window_view(numbers, max(1, width))[: len(ids)]
        answers = content in _ASKED
        unknown = Coded(np.zeros((len(ids), 1), np.int32), (NOT_YET_KNOWN,))
        return self.keep(
            name, content, on, ids, requested=ids, names=names, pending=pending,
            info={"scale": 1.0, "bias": 0.0} if content == "embeddings" else {},
            labels=unknown if answers else None,
            values=None if answers else rows,
        )  # fmt: skip

    def _known(self, section: RunConfig, interface: Interface) -> tuple[str | None, Preview]:
        """Return a model's key and preview without running it; see `look_up`."""
        model: Any = section.model
        if self._live is not None:
            model = self._live.opened(section, interface)
        if not isinstance(model, str):
            return preview_of(model)
        model_key = called(section.located(self.base)), self.options_of(section, interface)
        if model_key not in self._looked_up:
            self._looked_up[model_key] = look_up(*model_key, self.store)
        return self._looked_up[model_key]


def make_images(
    section: GeneratorSection, models: Models, request: Request, on: str, sampling: Any
) -> tuple[Generated | None, dict[str, Any]]:
    """Generate images, and return them with the fields of their `Outputs`.

    A dry run generates none: what is to do is among the latter.
    """
    options = models.config.extraction
    runs = section.located(models.base)
    settings = GenerationSettings(
        sampling=sampling, options=models.options_of(section), max_failures=options.max_failures
    )
    if options.part is not None:
        settings = replace(settings, part=options.part)
    service = settings.options.service
    if service is not None:
        models.open_bill(on, section)
        models.note_sent(on, section, f"{request.images} requests for an image")
        models.sent += [Note(on, text) for text in idle_settings(service, section)]
    if not models.dry:
        progress, bill = models.progress_of(on), models.bills.get(on)
        settings = replace(
            settings, progress=bill.progress(progress) if bill and progress else progress
        )
        generated = generate(request, runs, models.store, settings)
        return generated, {"info": generated.info, "inputs": generated.inputs}
    runs = called(runs)
    if isinstance(section.model, str):
        adapter, target = find_adapter(section.located(models.base), makes_images=True)
        adapter.preview(target)
    planned = plan(request, runs, models.store, settings)
    pending = {
        "runs": runs, "items": planned.images, "in_store": planned.present, "to_do": planned.to_do,
        "numbers": None, "bytes": planned.bytes, "seconds": planned.seconds,
    }  # fmt: skip
    if on in models.bills:
        texts = [prompt for group in request.groups for prompt in group.prompts]
        tokens = max(map(estimate_tokens, texts), default=0)
        usage = Usage(requests=1, images=1, prompt_tokens=tokens)
        estimate = models.bills[on].estimate(planned.to_do, usage)
        pending |= models.plan_requests(on, estimate)
    if request.at_steps:
        pending |= {
            "at_steps": planned.to_do * len(request.at_steps),
            "passes": planned.to_do * settings.sampling.steps,
        }
    return None, {"pending": pending}


_SENT_AS = {
    "steps": "num_inference_steps", "guidance": "guidance_scale",
    "negative_prompt": "negative_prompt", "height": "size", "width": "size",
}  # fmt: skip
"""Parameters of a request for an image, by the setting that they send."""


def idle_settings(service: Service, section: GeneratorSection) -> list[str]:
    """Return notes on settings of a generator that its server doesn't get."""
    sent = service.image_parameters
    keys = [key for key in given_keys(section, _SENT_AS) if _SENT_AS[key] not in sent]
    notes = [f"{', '.join(keys)}: not sent, the server has its own."] if keys else []
    if "seed" not in sent:
        notes.append("No seed is sent: asked again, the server gives other images.")
    return notes


def average_prompts(scores: Outputs, prompts: Prompts) -> Outputs:
    """Return scores with a column for each name: the mean over its prompts."""
    column = {text: place for place, text in enumerate(scores.names)}
    # The rows of a dry run are the same.
    values = scores.numbers[:1] if scores.planned else scores.numbers
    sums = np.zeros((len(values), len(prompts.names)))
    for text, owner in zip(prompts.texts, prompts.owner.tolist(), strict=True):
        sums[:, owner] += values[:, column[text]]
    means = (sums / np.bincount(prompts.owner, minlength=len(prompts.names))).astype(np.float32)
    scores_of_all = np.broadcast_to(means, (len(scores.ids), len(prompts.names)))
    return replace(scores, values=scores_of_all if scores.planned else means, names=prompts.names)


def prompts_of(about: Any, base: Path, *, subject: str) -> Prompts:
    """Return the prompts of every text of a table, by its id.

    Raises
    ------
    ConfigError
        When there is no such list of templates.
    DataError
        When the table cannot be read, or a text is missing.
    """
    columns = () if about.text is None else (about.text,)
    items = load_items(about.source(base, columns), subject=subject)
    texts = items.ids if about.text is None else items.columns[about.text]
    for row, text in enumerate(texts, start=1):
        if text is None or not str(text).strip():
            raise DataError(
                "the text is empty",
                file=items.name,
                column=about.text or about.id,
                row=row,
                expected="a text for a model to embed",
                fix="fill it in, or remove the row",
            )
    words = {item_id: (str(text),) for item_id, text in zip(items.ids.tolist(), texts, strict=True)}
    return filled_in(words, about.templates, place=f"{subject}.templates")


def filled_in(
    words: Mapping[str, Sequence[str]], templates: str | Sequence[str], *, place: str
) -> Prompts:
    """Return the prompts of named words.

    Raises
    ------
    ConfigError
        When there is no such list of templates, or one is there twice; it names the place.
    """
    try:
        return prompts(words, templates)
    except InputError as error:
        raise ConfigError(f"{place}: {error}") from None
