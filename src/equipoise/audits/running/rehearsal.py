"""A run without models: what would be asked of them, and stand-ins of the shape of the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits.running.live import located_model, options_of, refused, told_of
from equipoise.audits.running.runner import Offer, Ran

if TYPE_CHECKING:
    from equipoise.audits.config_sections import AuditConfig
    from equipoise.audits.running.config import RunConfig
    from equipoise.audits.running.expected import Expected
    from equipoise.evidence.asking import RunOptions
    from equipoise.evidence.pictures import Pictures
    from equipoise.evidence.prompts import Prompts

# Numbers of a vector of a model of which nothing is known.
_DIMENSION = 512
_BYTES = 4
_INFO = {"scale": 1.0, "bias": 0.0}
# Stand-ins repeat after so many rows.
_ROWS = 1024


@dataclass(frozen=True)
class RunningPlan:
    """What would be run before an audit, and what the audit would do.

    Attributes
    ----------
    runs : tuple of dict
        Per model and what it runs on: its name, how many images or texts, of images those that
        the store has, those that failed before and are not tried again, those to do and those
        whose files are not there, numbers of a row, and bytes to write; None where only loading
        the model tells.
    audit : dataclass
        The plan of the kind of audit, with every image taken as one that does not fail.
    notes : tuple of str
        What could not be looked up, and why.
    """

    runs: tuple[Mapping[str, Any], ...]
    audit: Any
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, runs: tuple[Mapping[str, Any], ...], audit: Any) -> RunningPlan:
        """Return the plan, with notes on models whose files cannot be looked up."""
        return cls(runs, audit, tuple(_not_looked_up(runs)))


@dataclass(frozen=True)
class Rehearsal:
    """Loads no model and gives stand-ins, see `runner.Runner`.

    Sizes, groups and the number of tests follow from the tables, whatever the models say; so a
    plan may look at anything but values.

    Attributes
    ----------
    config : AuditConfig
    base : Path
        What relative paths are relative to.
    opened : callable, optional
        Gives the model that a section names, so that each is what it is and not what its name
        promises; a model that cannot be loaded is an error. Without it none is opened.
    """

    config: AuditConfig
    base: Path
    opened: Callable[[RunConfig], Any] | None = None
    _keys: dict[tuple[str, RunOptions], str | None] = field(default_factory=dict, repr=False)

    @property
    def store(self) -> Path:
        """Folder of the evidence."""
        return self.base / self.config.extraction.store

    def offer(self, name: str, given: RunConfig, *allowed: Offer) -> Offer:
        """Return what a model is; what is asked for first where that is not known."""
        with told_of(name):
            found = self._expected(given).offer
        if found is not None and found not in allowed:
            raise refused(name, given, found, allowed, self.config.audit)
        return found or allowed[0]

    def images(
        self, name: str, given: RunConfig, pictures: Pictures, *, what: str = "images"
    ) -> Ran:
        """Stand in for vectors of images."""
        features = self.offer(name, given, "encoder", "classifier") == "classifier"
        known = self._expected(given).dimension
        told = self._pending(given, pictures, "embeddings", known, features=features)
        table = _table(pictures.ids, "embedding", known or _DIMENSION)
        return Ran(name, what, table, _INFO, tuple(pictures.ids.tolist()), pending=told)

    def texts(self, name: str, given: RunConfig, prompts: Prompts, *, what: str = "queries") -> Ran:
        """Stand in for vectors of texts."""
        self.offer(name, given, "encoder")
        known = self._expected(given).dimension
        texts = len({*prompts.texts})
        # How many of them the store has is not looked up.
        told = {
            "runs": self._named(given), "items": texts, "in_store": None, "failed_before": None,
            "to_do": None, "files_missing": None, "numbers": known, "bytes": None,
        }  # fmt: skip
        ids = np.array(prompts.names, dtype=object)
        return Ran(name, what, _table(ids, "embedding", known or _DIMENSION), {}, prompts.names,
                   pending=told)  # fmt: skip

    def scores(
        self,
        name: str,
        given: RunConfig,
        pictures: Pictures,
        texts: Sequence[str],
        *,
        what: str = "images",
    ) -> Ran:
        """Stand in for scores of images and texts."""
        self.offer(name, given, "scorer")
        names = tuple(dict.fromkeys(texts))
        return self._values(name, given, pictures, what, "scores", names)

    def probabilities(
        self,
        name: str,
        given: RunConfig,
        pictures: Pictures,
        *,
        what: str = "images",
        expected: Sequence[str] = (),
    ) -> Ran:
        """Stand in for probabilities of classes."""
        self.offer(name, given, "classifier")
        known = self._expected(given).labels
        names = known or tuple(expected)
        if self.opened is not None and not expected:
            # Which of its own classes a model will predict is not known, though all are.
            names = ()
        ran = self._values(name, given, pictures, what, "probabilities", names)
        return replace(ran, info={"labels": known})

    def answers(
        self,
        name: str,
        given: RunConfig,
        pictures: Pictures,
        question: str,
        *,
        what: str = "images",
    ) -> Ran:
        """Stand in for answers."""
        self.offer(name, given, "answerer")
        told = self._pending(given, pictures, "answers", None, question=question)
        answers = pa.array([""] * len(pictures), pa.string())
        table = pa.table({"id": pa.array(pictures.ids, pa.string()), "answer": answers})
        return Ran(name, what, table, {}, tuple(pictures.ids.tolist()), pending=told)

    def _values(
        self,
        name: str,
        given: RunConfig,
        pictures: Pictures,
        what: str,
        kind: str,
        names: tuple[str, ...],
    ) -> Ran:
        texts = names if kind == "scores" else ()
        told = self._pending(given, pictures, kind, len(names) or None, texts=texts)
        table = _table(pictures.ids, "values", max(1, len(names)))
        return Ran(name, what, table, {}, tuple(pictures.ids.tolist()), names, pending=told)

    def _expected(self, given: RunConfig) -> Expected:
        from equipoise.audits.running.expected import expected

        if self.opened is not None:
            return expected(self.opened(given), self.store)
        model = given.model
        return expected(model if hasattr(model, "info") else self._named(given), self.store)

    def _named(self, given: RunConfig) -> str:
        model = given.model
        return located_model(model, self.base) if isinstance(model, str) else given.called

    def _pending(
        self, given: RunConfig, pictures: Pictures, kind: str, numbers: int | None, **asked: Any
    ) -> dict[str, Any]:
        from equipoise.evidence import pending

        named = self._named(given)
        asked |= {"key": self._key(given), "part": self.config.extraction.part}
        found = pending(pictures, named, kind, self.store, **asked)
        known = None if numbers is None else found.to_do * numbers * _BYTES
        return {
            "runs": named,
            "items": found.images,
            "in_store": found.present,
            "failed_before": found.failed,
            "to_do": found.to_do,
            "files_missing": found.gone,
            "numbers": numbers,
            "bytes": found.bytes if known is None else known,
        }

    def _key(self, given: RunConfig) -> str | None:
        """Return the key of a model: "" of one never loaded, None where only its name is known."""
        from equipoise.audits.running.remembered import known_by_files

        if self.opened is not None or not isinstance(given.model, str):
            model: Any = given.model if self.opened is None else self.opened(given)
            return str(model.info.key)
        asked = self._named(given), options_of(given, self.config)
        if asked not in self._keys:
            tells, known = known_by_files(*asked, self.store)
            self._keys[asked] = known.info.key if known else ("" if tells else None)
        return self._keys[asked]


def _not_looked_up(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    from equipoise.models.hub import is_installed

    models = dict.fromkeys(one["runs"] for one in runs if one["runs"].startswith("hf:"))
    if models and not is_installed():
        yield (
            f"huggingface_hub is not installed, so {', '.join(models)} was not looked up in the "
            "hub's local cache, and an audit cannot run it. To do: pip install 'equipoise[hf]'."
        )


def _table(ids: npt.NDArray[np.object_], column: str, width: int) -> pa.Table:
    """Return rows of numbers that are drawn once, the same for every model."""
    rows = np.random.default_rng(0).random((_ROWS, width), dtype=np.float32).astype(np.float16)
    cells = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), width)
    # The same block again and again costs the memory of one.
    blocks = [cells[: len(ids) - start] for start in range(0, len(ids), _ROWS)]
    every = pa.chunked_array(blocks, cells.type)
    return pa.table({"id": pa.array(ids, pa.string()), column: every})
