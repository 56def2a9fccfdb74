"""A model before and after: three measures of association, and retrieval, with paired intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.stats.intervals import percentile
from equipoise.stats.streams import unit_keys, unit_times

Floats = npt.NDArray[np.float64]

MEASURES = (
    "normalized_similarity_mad", "retrieval_mad", "differential_association",
    "text_recall_at_1", "text_recall_at_5", "image_recall_at_1", "image_recall_at_5",
)  # fmt: skip
_RECALLS = (1, 5)
_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Trial:
    """What a model is tried on: best images that no unit was looked for in.

    Attributes
    ----------
    images : sequence of n images
    groups : array-like (n,), mapping, or Groups
        Images without a group take no part.
    concepts : mapping of str to sequence of str
        Texts of each concept; the first two are those of the differential association, with the
        first two groups.
    captions : sequence of n str, optional
        What each image shows, in words, for retrieval.
    units : array-like (n,), optional
        What images repeat within; resampled together.
    k : int
        Images that are retrieved for a concept.
    """

    images: Sequence[Any] = field(repr=False)
    groups: Any = field(repr=False)
    concepts: Mapping[str, Sequence[str]]
    captions: Sequence[str] | None = field(default=None, repr=False)
    units: Any = field(default=None, repr=False)
    k: int = 100

    def __post_init__(self) -> None:
        """Check what is given.

        Raises
        ------
        InputError
            When lengths differ, there are fewer than two groups or concepts, or k is too large.
        """
        n, found = len(self.images), self.grouped
        for what, given in (("groups", found.codes), ("captions", self.captions),
                            ("units", self.units)):  # fmt: skip
            if given is not None and len(given) != n:
                raise InputError(f"{what}: {len(given)} for {n} images; expected one each")
        if int((found.counts > 0).sum()) < 2:
            raise InputError("groups: fewer than two have images; expected two or more")
        if len(self.concepts) < 2 or not all(len(texts) for texts in self.concepts.values()):
            raise InputError("concepts: expected two or more, each with texts")
        if not 0 < self.k < n:
            raise InputError(f"k={self.k}: expected from 1 to fewer than the {n} images")

    @cached_property
    def grouped(self) -> Groups:
        """The groups."""
        return Groups.of(self.groups)

    @cached_property
    def keys(self) -> npt.NDArray[np.uint64]:
        """What each image is resampled with."""
        names = range(len(self.images)) if self.units is None else self.units
        return unit_keys([*map(str, names)])

    def draws(self, model: Any, replicates: int, seed: int) -> dict[str, Floats]:
        """Return each measure of a model: observed, then in each replicate.

        Replicates are paired: the same images are drawn of every model.
        """
        vectors = _unit(model.embed_images(self.images))
        concepts = np.stack([
            _unit(_unit(model.embed_texts([*texts])).mean(axis=0)[None])[0]
            for texts in self.concepts.values()
        ])  # fmt: skip
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = vectors @ concepts.T
        hits = {} if self.captions is None else self._hits(model, vectors)
        times = unit_times(self.keys, replicates, seed).T
        parts: dict[str, list[Floats]] = {}
        for start in range(0, len(times), _AT_ONCE):
            weights = times[start : start + _AT_ONCE].astype(np.float64)
            for name, values in self._measured(scores, hits, weights).items():
                parts.setdefault(name, []).append(values)
        return {name: np.concatenate(values) for name, values in parts.items()}

    def _measured(
        self, scores: Floats, hits: Mapping[str, Floats], weights: Floats
    ) -> dict[str, Floats]:
        codes = self.grouped.codes
        members = [weights * (codes == code) for code in np.flatnonzero(self.grouped.counts > 0)]
        known = weights * (codes >= 0)
        means = np.stack([_mean(scores, one) for one in members])
        found = {
            "normalized_similarity_mad": _similarity(scores, known, means),
            "retrieval_mad": _retrieval(scores, known, codes, self.k),
            "differential_association": (means[0, :, 0] - means[1, :, 0])
            - (means[0, :, 1] - means[1, :, 1]),
        }
        return found | {name: _mean(one[:, None], weights)[:, 0] for name, one in hits.items()}

    def _hits(self, model: Any, vectors: Floats) -> dict[str, Floats]:
        """Return whether each image finds its caption, and is found by it, among the first k."""
        texts, owner = np.unique(np.array(self.captions, dtype=object).astype(str),
                                 return_inverse=True)  # fmt: skip
        scores = vectors @ _unit(model.embed_texts(texts.tolist())).T
        own = scores[np.arange(len(scores)), owner]
        text_rank = (scores > own[:, None]).sum(axis=1)
        # A caption finds an image of its own as soon as the best of them is among the first.
        best = np.array([scores[owner == one, one].max() for one in range(len(texts))])
        image_rank = np.array([(scores[:, one] > best[one]).sum() for one in range(len(texts))])
        return {
            f"{what}_recall_at_{k}": (rank < k).astype(np.float64)
            for what, rank in (("text", text_rank), ("image", image_rank[owner]))
            for k in _RECALLS
        }


def _unit(vectors: Any) -> Floats:
    rows = np.asarray(vectors, dtype=np.float64)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))


def _mean(values: Floats, weights: Floats) -> Floats:
    """Return weighted means, (replicates, columns); NaN where nothing counts."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((weights @ values) / weights.sum(axis=1, keepdims=True))


def _similarity(scores: Floats, weights: Floats, means: Floats) -> Floats:
    """Spread of the groups' normalised similarity, mean over concepts; (replicates,)."""
    middle = _mean(scores, weights)
    variance = np.maximum(_mean(scores**2, weights) - middle**2, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        normal = np.where(variance > 1e-18, (means - middle) / np.sqrt(variance), 0.0)
    return np.asarray(np.abs(normal - normal.mean(axis=0)).sum(axis=0).mean(axis=1))


def _retrieval(scores: Floats, weights: Floats, codes: Any, k: int) -> Floats:
    """Spread of the groups' shares of the k most similar images, mean over concepts."""
    groups = [code for code in range(int(codes.max()) + 1) if (codes == code).any()]
    each = []
    for concept in range(scores.shape[1]):
        order = np.argsort(-scores[:, concept], kind="stable")
        ordered = weights[:, order]
        before = ordered.cumsum(axis=1) - ordered
        taken = np.clip(k - before, 0.0, ordered)
        shares = np.stack([taken[:, codes[order] == code].sum(axis=1) for code in groups]) / k
        each.append(np.abs(shares - shares.mean(axis=0)).sum(axis=0))
    return np.asarray(np.mean(each, axis=0))


def compare_models(
    before: Any,
    after: Any,
    trial: Trial,
    *,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> pa.Table:
    """Measure two dual encoders on the same images.

    Parameters
    ----------
    before, after : DualEncoder
    trial : Trial
    replicates : int
        Of the bootstrap over images or units.
    seed : int
    level : float
        Of the intervals.

    Returns
    -------
    pyarrow.Table
        Per measure: `measure`, `before`, `after` and `difference`, each with `_low` and `_high` by
        percentile bootstrap, paired over images or units.

    References
    ----------
    Chen & Dou 2022, "Measuring and Mitigating Bias in Vision-and-Language Models".
    """
    first, second = (trial.draws(one, replicates, seed) for one in (before, after))
    rows = [_row(name, first[name], second[name], level) for name in first]
    return pa.Table.from_pylist(rows)


def _row(name: str, first: Floats, second: Floats, level: float) -> dict[str, Any]:
    row: dict[str, Any] = {"measure": name}
    for what, draws in (("before", first), ("after", second), ("difference", second - first)):
        low, high, _ = percentile(draws[1:], level)
        row |= {what: float(draws[0]), f"{what}_low": float(low), f"{what}_high": float(high)}
    return row
