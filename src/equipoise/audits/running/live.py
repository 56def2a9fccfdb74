"""Running models for an audit: each is opened once, and asked what the store does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.audits.running.runner import WORDS, Offer, Ran
from equipoise.core.errors import ConfigError, ModelError

if TYPE_CHECKING:
    from equipoise.audits.config_sections import AuditConfig
    from equipoise.audits.kinds import Progress
    from equipoise.audits.running.config import RunConfig
    from equipoise.evidence.asking import RunOptions
    from equipoise.evidence.extraction import Extraction
    from equipoise.evidence.pictures import Pictures
    from equipoise.evidence.prompts import Prompts

# Prefixes whose rest can be a folder or file.
_ON_DISK = ("hf", "open_clip", "timm", "onnx", "equipoise", "edited")


@dataclass(frozen=True, eq=False)
class Live:
    """Runs models, see `runner.Runner`.

    Attributes
    ----------
    config : AuditConfig
    base : Path
        What relative paths are relative to.
    progress : callable or None
        Told the step, what is done and what there is to do.
    """

    config: AuditConfig
    base: Path
    progress: Progress | None = None
    _open: dict[tuple[str, RunOptions], Any] = field(default_factory=dict, repr=False)

    @property
    def store(self) -> Path:
        """Folder of the evidence."""
        return self.base / self.config.extraction.store

    def offer(self, name: str, given: RunConfig, *allowed: Offer) -> Offer:
        """Return what a model is; refuse one that is none of what is allowed."""
        from equipoise.audits.running.opened import offer_of

        with told_of(name):
            model = self.opened(given)
        found = offer_of(model)
        if found is None or found not in allowed:
            raise refused(name, given, found, allowed, self.config.audit)
        return found

    def images(
        self, name: str, given: RunConfig, pictures: Pictures, *, what: str = "images"
    ) -> Ran:
        """Embed images: with a dual encoder, or the features of a classifier."""
        from equipoise.evidence.extraction import extract_embeddings

        features = self.offer(name, given, "encoder", "classifier") == "classifier"
        found = self._extracted(name, what, given, extract_embeddings, pictures, features=features)
        return _ran(name, what, pictures, found, "embedding")

    def texts(self, name: str, given: RunConfig, prompts: Prompts, *, what: str = "queries") -> Ran:
        """Embed the names of prompts, each as the mean of the unit vectors of its prompts."""
        from equipoise.evidence.texts import embed_classes

        self.offer(name, given, "encoder")
        with self._stoppable(), told_of(name):
            vectors, texts = embed_classes(
                prompts, self.opened(given), self.store, progress=self._telling(name, what)
            )
        flat = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel())
        cells = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
        table = pa.table({"id": pa.array(prompts.names, pa.string()), "embedding": cells})
        return Ran(name, what, table, texts.info, prompts.names, inputs=texts.inputs)

    def scores(
        self,
        name: str,
        given: RunConfig,
        pictures: Pictures,
        texts: Sequence[str],
        *,
        what: str = "images",
    ) -> Ran:
        """Score each image with each text."""
        from equipoise.evidence.extraction import extract_scores

        self.offer(name, given, "scorer")
        asked = tuple(dict.fromkeys(texts))
        found = self._extracted(name, what, given, extract_scores, pictures, asked)
        return _ran(name, what, pictures, found, "scores")

    def probabilities(
        self,
        name: str,
        given: RunConfig,
        pictures: Pictures,
        *,
        what: str = "images",
        expected: Sequence[str] = (),  # noqa: ARG002 - for those that do not know the classes
    ) -> Ran:
        """Give each image a probability per class."""
        from equipoise.evidence.extraction import extract_probabilities

        self.offer(name, given, "classifier")
        found = self._extracted(name, what, given, extract_probabilities, pictures)
        return _ran(name, what, pictures, found, "probabilities")

    def answers(
        self,
        name: str,
        given: RunConfig,
        pictures: Pictures,
        question: str,
        *,
        what: str = "images",
    ) -> Ran:
        """Ask about each image."""
        from equipoise.evidence.extraction import extract_answers

        self.offer(name, given, "answerer")
        found = self._extracted(name, what, given, extract_answers, pictures, question)
        return _ran(name, what, pictures, found, "answer")

    def opened(self, given: RunConfig) -> Any:
        """Return the model that a section names.

        The weights of one named model at a time are in memory: those of the others are let go, and
        loaded again where they are asked for again.
        """
        from equipoise.audits.running.opened import rested
        from equipoise.audits.running.remembered import open_model

        if not isinstance(given.model, str):
            return given.model
        asked = located_model(given.model, self.base), options_of(given, self.config)
        for other in self._open.keys() - {asked}:
            name, options = other
            self._open[other] = rested(self._open[other], partial(options.load, name))
        if asked not in self._open:
            self._tell(f"opening {given.model}")
            self._open[asked] = open_model(*asked, self.store)
        return self._open[asked]

    def _extracted(
        self,
        name: str,
        what: str,
        given: RunConfig,
        extract: Callable[..., Extraction],
        *asked: Any,
        **more: Any,
    ) -> Extraction:
        options = self.config.extraction
        model = self.opened(given)
        if options.part is not None:
            more["part"] = options.part
        if isinstance(given.model, str) and (options.engine == "ray" or _spreads(model)):
            # Each worker opens a model of its own.
            model = located_model(given.model, self.base.absolute())
            more["options"] = options_of(given, self.config)
        with self._stoppable(), told_of(name):
            return extract(
                *asked,
                model,
                self.store,
                engine=options.engine,
                max_failures=options.max_failures,
                progress=self._telling(name, what),
                **more,
            )

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        """Say, where a run is stopped, that nothing of what is done is lost."""
        try:
            yield
        except KeyboardInterrupt as error:
            # As the kind it is: the command line tells Ctrl-C from a polite kill.
            raise type(error)(
                f"interrupted; what the model said so far is kept in {self.store}, and the same "
                "command goes on from there"
            ) from None

    def _telling(self, name: str, what: str) -> Progress | None:
        progress = self.progress
        if progress is None:
            return None
        return lambda step, done, total: progress(f"{name}, {what}: {step}", done, total)

    def _tell(self, step: str) -> None:
        if self.progress is not None:
            self.progress(step, 0, None)


def _spreads(model: Any) -> bool:
    """Whether a model that was asked for on any GPU can run on several."""
    if model.info.device != "cuda":
        return False
    from equipoise.models.runtimes import gpus

    return gpus() > 1


@contextmanager
def told_of(name: str) -> Iterator[None]:
    """Have what is wrong with a model name the key of the configuration that names the model."""
    key = f"models.{name}.model: "
    try:
        yield
    except ModelError as error:
        if not str(error).startswith(key):
            error.args = (f"{key}{error}",)
        raise


def refused(
    name: str, given: RunConfig, found: Offer | None, allowed: Sequence[Offer], audit: str
) -> ConfigError:
    """Return the error of a model that cannot be asked what an audit asks."""
    kind = WORDS[found] if found else "no model"
    return ConfigError(
        f"models.{name}.model: {given.called} is {kind}; an audit of {audit} takes "
        f"{' or '.join(WORDS[one] for one in allowed)}"
    )


def located_model(name: str, base: Path) -> str:
    """Return the name of a model with a folder or file beside the configuration in full."""
    prefix, _, rest = name.partition(":")
    beside = base / rest
    return f"{prefix}:{beside}" if prefix in _ON_DISK and beside.exists() else name


def options_of(given: RunConfig, config: AuditConfig) -> RunOptions:
    """Return how a model is loaded: as it says, else as the section `extraction` says."""
    from equipoise.evidence.asking import RunOptions

    every = config.extraction
    return RunOptions(
        device=given.device or every.device,
        dtype=given.dtype or every.dtype,
        backend=given.backend or every.backend,
        revision=given.revision,
        allow_pickle=given.allow_pickle,
        trust_remote_code=given.trust_remote_code,
    )


def _ran(name: str, what: str, pictures: Pictures, found: Extraction, column: str) -> Ran:
    values = "values" if column in ("scores", "probabilities") else column
    table = pa.table({"id": found.table["image_id"], values: found.table[column]})
    failed = zip(*(found.failures[one].to_pylist() for one in ("image_id", "stage")), strict=True)
    return Ran(
        name, what, table, found.info, tuple(pictures.ids.tolist()), found.names, dict(failed),
        found.inputs, found.identical,
    )  # fmt: skip
