"""Two dual encoders on the same images: association and retrieval, with paired intervals."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from equipoise.core import Floats, Groups, InputError, record, unwarned
from equipoise.models import DualEncoder
from equipoise.models.wrapped import unit_vectors
from equipoise.stats.intervals import percentile
from equipoise.stats.streams import unit_keys, unit_times

_RECALLS = (1, 5)
_AT_ONCE = 64


@record
class Trial:
    """Data to try a model on: best images that no unit was searched in.

    Attributes
    ----------
    images : sequence of n images
    groups : array-like (n,), mapping, or Groups
        Images without a group take no part.
    concepts : mapping of str to sequence of str
        Texts of each concept; the first two are those of the differential association, with the
        first two groups.
    captions : sequence of n str, optional
        A description of each image, for retrieval.
    units : array-like (n,), optional
        Images of one unit are resampled together.
    k : int
        Images that are retrieved for a concept.
    """

    images: Sequence[Any]
    groups: Any
    concepts: Mapping[str, Sequence[str]]
    captions: Sequence[str] | None = None
    units: Any = None
    k: int = 100

    def __post_init__(self) -> None:
        """Check the data.

        Raises
        ------
        InputError
            When lengths differ, there are fewer than two groups or concepts, or k is too large.
        """
        columns = {"groups": self.grouped.codes, "captions": self.captions, "units": self.units}
        for what, values in columns.items():
            if values is not None and len(values) != len(self.images):
                raise InputError(f"{what}: {len(values)} for {len(self.images)} images")
        if len(self._present) < 2 or len(self.concepts) < 2:
            raise InputError("expected two or more groups with images, and as many concepts")
        if not 0 < self.k < len(self.images):
            raise InputError(f"k={self.k}: expected from 1 to fewer than the images")

    @cached_property
    def grouped(self) -> Groups:
        """The groups."""
        return Groups.of(self.groups)

    @property
    def _present(self) -> list[int]:
        return np.flatnonzero(self.grouped.counts > 0).tolist()

    def draws(self, model: DualEncoder, replicates: int, seed: int) -> dict[str, Floats]:
        """Return each measure of a model: observed, then in each replicate.

        Replicates are paired: the same images are drawn for every model.

        Raises
        ------
        InputError
            When the model doesn't compare images with texts.
        """
        if not isinstance(model, DualEncoder):
            raise InputError(
                f"{type(model).__name__}: a trial compares images with texts. "
                "To do: give a dual encoder; measure a classifier by its predictions"
            )
        vectors = unit_vectors(model.embed_images(self.images))
        concepts = [unit_vectors(model.embed_texts([*texts])) for texts in self.concepts.values()]
        means = unit_vectors(np.stack([texts.mean(axis=0) for texts in concepts]))
        with unwarned():
            scores = vectors @ means.T
        hits = {} if self.captions is None else self._hits(model, vectors)
        units = range(len(self.images)) if self.units is None else self.units
        times = unit_times(unit_keys([*map(str, units)]), replicates, seed).T
        parts = [
            self._measures(scores, hits, times[start : start + _AT_ONCE].astype(np.float64))
            for start in range(0, len(times), _AT_ONCE)
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _measures(
        self, scores: Floats, hits: Mapping[str, Floats], weights: Floats
    ) -> dict[str, Floats]:
        codes, known = self.grouped.codes, weights * (self.grouped.codes >= 0)
        means = np.stack([_mean(scores, weights * (codes == code)) for code in self._present])
        # Spread of the groups' normalised similarity, mean over concepts.
        middle = _mean(scores, known)
        variance = np.maximum(_mean(scores**2, known) - middle**2, 0.0)
        with unwarned():
            normal = np.where(variance > 1e-18, (means - middle) / np.sqrt(variance), 0.0)
        spread = np.abs(normal - normal.mean(axis=0)).sum(axis=0).mean(axis=1)
        measures = {
            "normalized_similarity_mad": spread,
            "retrieval_mad": self._retrieval(scores, known),
            "differential_association": (means[0, :, 0] - means[1, :, 0])
            - (means[0, :, 1] - means[1, :, 1]),
        }
        return measures | {name: _mean(hit[:, None], weights)[:, 0] for name, hit in hits.items()}

    def _retrieval(self, scores: Floats, weights: Floats) -> Floats:
        """Spread of the groups' shares of the k most similar images, mean over concepts."""
        each = []
        for concept in scores.T:
            order = np.argsort(-concept, kind="stable")
            ordered, codes = weights[:, order], self.grouped.codes[order]
            before = ordered.cumsum(axis=1) - ordered
            taken = np.clip(self.k - before, 0.0, ordered)
            counts = np.stack([taken[:, codes == code].sum(axis=1) for code in self._present])
            shares = counts / self.k
            each.append(np.abs(shares - shares.mean(axis=0)).sum(axis=0))
        return np.asarray(np.mean(each, axis=0))

    def _hits(self, model: Any, vectors: Floats) -> dict[str, Floats]:
        """Return whether each image finds its caption, and is found by it, among the first k."""
        texts, owner = np.unique(np.array(self.captions, dtype=str), return_inverse=True)
        scores = vectors @ unit_vectors(model.embed_texts(texts.tolist())).T
        own = scores[np.arange(len(scores)), owner]
        text_rank = (scores > own[:, None]).sum(axis=1)
        # A caption finds an image of its own as soon as the best of them is among the first.
        best = np.full(len(texts), -np.inf)
        np.maximum.at(best, owner, own)
        image_rank = (scores > best).sum(axis=0)[owner]
        return {
            f"{what}_recall_at_{k}": (rank < k).astype(np.float64)
            for what, rank in (("text", text_rank), ("image", image_rank))
            for k in _RECALLS
        }


def _mean(values: Floats, weights: Floats) -> Floats:
    """Return weighted means, (replicates, columns); NaN where nothing counts."""
    with unwarned():
        return np.asarray((weights @ values) / weights.sum(axis=1, keepdims=True))


def compare_models(
    before: DualEncoder,
    after: DualEncoder,
    trial: Trial,
    *,
    replicates: int = 1000,
    seed: int = 0,
) -> pa.Table:
    """Measure two dual encoders on the same images.

    Parameters
    ----------
    before, after : DualEncoder
    trial : Trial
    replicates : int
        Of the bootstrap over images or units.
    seed : int

    Returns
    -------
    pyarrow.Table
        Per measure: `measure`, `before`, `after` and `difference`, each with `_low` and `_high` by
        percentile bootstrap, paired over images or units.

    References
    ----------
    Chen & Dou 2022, "Measuring and Mitigating Bias in Vision-and-Language Models".
    """
    first, second = (trial.draws(model, replicates, seed) for model in (before, after))
    return pa.Table.from_pylist(change_rows(first, second))


def change_rows(
    before: Mapping[str, Floats], after: Mapping[str, Floats]
) -> list[dict[str, str | float]]:
    """Return each measure of `Trial.draws` before, after and their difference, with intervals."""
    rows = []
    for name, first in before.items():
        row: dict[str, str | float] = {"measure": name}
        second = after[name]
        for what, draws in (("before", first), ("after", second), ("difference", second - first)):
            low, high = percentile(draws[1:], 0.95)
            row |= {what: float(draws[0]), f"{what}_low": float(low), f"{what}_high": float(high)}
        rows.append(row)
    return rows
