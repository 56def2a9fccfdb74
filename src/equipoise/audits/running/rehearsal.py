"""A run without models: what would be asked of them, and stand-ins of the shape of the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits.outputs import DryRun
from equipoise.audits.running.runner import Offer, Ran

if TYPE_CHECKING:
    from equipoise.audits.running.config import RunConfig
    from equipoise.evidence.pictures import Pictures
    from equipoise.evidence.prompts import Prompts

# Numbers of a vector of a model of which nothing is known.
_DIMENSION = 512
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
        return cls(runs, audit, tuple(not_looked_up(runs)))


class Rehearsal(DryRun):
    """Loads no model and gives stand-ins, see `runner.Runner`.

    Sizes, groups and the number of tests follow from the tables, whatever the models say; so a
    plan may look at anything but values.
    """

    def offer(self, name: str, given: RunConfig, *allowed: Offer) -> Offer:
        """Return what a model is; what is asked for first where that is not known."""
        return self.capability(name, given, *allowed)

    def images(
        self, name: str, given: RunConfig, pictures: Pictures, *, what: str = "images"
    ) -> Ran:
        """Stand in for vectors of images."""
        features = self.capability(name, given, "encoder", "classifier") == "classifier"
        known = self.signature(given).dimension
        told = self.to_do(given, pictures, "embeddings", known, features=features)
        table = _table(pictures.ids, "embedding", known or _DIMENSION)
        return Ran(name, what, table, _INFO, tuple(pictures.ids.tolist()), pending=told)

    def texts(self, name: str, given: RunConfig, prompts: Prompts, *, what: str = "queries") -> Ran:
        """Stand in for vectors of texts."""
        self.capability(name, given, "encoder")
        known = self.signature(given).dimension
        texts = len({*prompts.texts})
        # How many of them the store has is not looked up.
        told = {
            "runs": self.located(given), "items": texts, "in_store": None, "failed_before": None,
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
        self.capability(name, given, "scorer")
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
        self.capability(name, given, "classifier")
        known = self.signature(given).labels
        names = known or tuple(expected)
        if self._opened is not None and not expected:
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
        self.capability(name, given, "answerer")
        told = self.to_do(given, pictures, "answers", None, question=question)
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
        told = self.to_do(given, pictures, kind, len(names) or None, texts=texts)
        table = _table(pictures.ids, "values", max(1, len(names)))
        return Ran(name, what, table, {}, tuple(pictures.ids.tolist()), names, pending=told)


def not_looked_up(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the note on models that need a library to be looked up."""
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
