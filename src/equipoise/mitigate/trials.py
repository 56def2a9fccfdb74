"""Two models on the same images: association and retrieval, with paired intervals."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import entr

from equipoise.core import Bytes, Floats, Groups, InputError, Positions, record, unwarned
from equipoise.mitigate.measuring import (
    ACCURACY,
    NEUTRAL,
    RetrievalSet,
    embed_images,
    embed_prompts,
)
from equipoise.models.images import Images
from equipoise.models.protocols import DualEncoder, Model, PairScorer
from equipoise.models.wrapped import unit_vectors
from equipoise.stats.intervals import percentile
from equipoise.stats.streams import unit_keys, unit_times

ASSOCIATION = "differential_association"
"""What the association of the first two concepts with the first two groups is called."""
_RECALLS = (1, 5)
_AT_ONCE = 64
_ENOUGH = 4


@record
class Trial:
    """Data to measure a model on; best other images than units were chosen on.

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
    neutral_captions : sequence of n str, optional
        The captions without the attribute that they name: recall is measured with these, too.
    units : array-like (n,), optional
        Images of one unit are resampled together.
    labels : sequence of n str, optional
        True class of each image, for zero-shot accuracy.
    classes : mapping of str to sequence of str, optional
        Texts of each class.
    k : int
        Images that are retrieved for a concept.
    retrieval : RetrievalSet, optional
        Other images with captions, on which recall is measured in place of `captions`.
    """

    images: Images
    groups: Any
    concepts: Mapping[str, Sequence[str]]
    captions: Sequence[str] | None = None
    neutral_captions: Sequence[str] | None = None
    units: Any = None
    labels: Sequence[str] | None = None
    classes: Mapping[str, Sequence[str]] | None = None
    k: int = 100
    retrieval: RetrievalSet | None = None

    def __post_init__(self) -> None:
        """Check the data.

        Raises
        ------
        InputError
            When lengths differ, there are fewer than two groups or concepts, or k is too large.
        """
        columns = {
            "groups": self.grouped.codes, "captions": self.captions, "units": self.units,
            "neutral_captions": self.neutral_captions, "labels": self.labels,
        }  # fmt: skip
        for name, values in columns.items():
            if values is not None and len(values) != len(self.images):
                raise InputError(f"{name}: {len(values)} for {len(self.images)} images")
        if len(self._present) < 2 or len(self.concepts) < 2:
            raise InputError(
                f"groups, concepts: {len(self._present)} with images, {len(self.concepts)}; "
                "expected two or more of each"
            )
        if not 0 < self.k < len(self.images):
            raise InputError(f"k={self.k}: expected 1 to {len(self.images) - 1}")
        if {*(() if self.labels is None else self.labels)} - {*(self.classes or ())}:
            raise InputError("labels: some have no texts in classes; expected texts of each")
        if self.neutral_captions is not None and self.captions is None:
            raise InputError("neutral_captions: expected captions, too")
        if self.captions is not None and self.retrieval is not None:
            raise InputError("captions, retrieval: recall is of one data set; expected one of them")

    @cached_property
    def grouped(self) -> Groups:
        """The groups."""
        return Groups.of(self.groups)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of the recall."""
        pairs = self.retrieval or self._own_pairs
        return () if pairs is None else pairs.notes

    @property
    def _own_pairs(self) -> RetrievalSet | None:
        """The images with their captions, where they have any."""
        if self.captions is None:
            return None
        captions, neutral = (
            None if texts is None else np.array([*texts], dtype=object)
            for texts in (self.captions, self.neutral_captions)
        )
        assert captions is not None  # noqa: S101 - checked above
        return RetrievalSet("", self.images, captions, neutral=neutral)

    @property
    def _present(self) -> list[int]:
        return np.flatnonzero(self.grouped.counts > 0).tolist()

    def draws(self, model: Model, replicates: int, seed: int) -> dict[str, Floats]:
        """Return each measure of a model: observed, then in each replicate.

        Replicates are paired: the same images are drawn for every model.

        Raises
        ------
        InputError
            When the model doesn't compare images with texts.
        """
        compare = _score_function(model, self.images)
        scores, hits = compare([*self.concepts.values()]), dict[str, Floats]()
        if self._own_pairs is not None:
            hits = _recalls(compare, self._own_pairs)
        if self.labels is not None and self.classes is not None:
            correct = np.array([*self.classes])[compare([*self.classes.values()]).argmax(axis=1)]
            hits[ACCURACY] = (correct == np.array(self.labels, dtype=str)).astype(np.float64)
        times = self._resample_counts(replicates, seed)
        parts = [
            self._compute_measures(scores, hits, times[start : start + _AT_ONCE].astype(np.float64))
            for start in range(0, len(times), _AT_ONCE)
        ]
        draws = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return draws | self._other_recall(model, replicates, seed)

    def _other_recall(self, model: Model, replicates: int, seed: int) -> dict[str, Floats]:
        """Return recall on the other data set: observed, then in each replicate."""
        pairs = self.retrieval
        if pairs is None:
            return {}
        hits = _recalls(_score_function(model, pairs.images), pairs)
        keys = unit_keys([*map(str, range(len(pairs.images)))])
        weights = unit_times(keys, replicates, seed).T.astype(np.float64)
        return {name: _weighted_means(hit[:, None], weights)[:, 0] for name, hit in hits.items()}

    def gaps(self, values: Floats, replicates: int, seed: int) -> Floats:
        """Return the difference in mean values, first group less second group.

        Returns
        -------
        ndarray of float64, shape (1 + replicates, columns)
            Observed, then in each replicate.
        """
        times, codes = (
            self._resample_counts(replicates, seed).astype(np.float64),
            self.grouped.codes,
        )
        first, second = self._present[:2]
        return _weighted_means(values, times * (codes == first)) - _weighted_means(
            values, times * (codes == second)
        )

    def text_means(self, model: DualEncoder) -> Floats:
        """Return the mean vector of each concept, (concepts, dimension), of length 1."""
        return embed_prompts(model, [*self.concepts.values()])

    def _resample_counts(self, replicates: int, seed: int) -> Bytes:
        """Return how often each image counts, (1 + replicates, n)."""
        units = range(len(self.images)) if self.units is None else self.units
        return unit_times(unit_keys([*map(str, units)]), replicates, seed).T

    def _compute_measures(
        self, scores: Floats, hits: Mapping[str, Floats], weights: Floats
    ) -> dict[str, Floats]:
        codes, labelled_weights = self.grouped.codes, weights * (self.grouped.codes >= 0)
        means = np.stack(
            [_weighted_means(scores, weights * (codes == code)) for code in self._present]
        )
        # Spread of the groups' normalised similarity, mean over concepts.
        middle = _weighted_means(scores, labelled_weights)
        variance = np.maximum(_weighted_means(scores**2, labelled_weights) - middle**2, 0.0)
        with unwarned():
            normal = np.where(variance > 1e-18, (means - middle) / np.sqrt(variance), 0.0)
        spread = np.abs(normal - normal.mean(axis=0)).sum(axis=0).mean(axis=1)
        shares = self._retrieval_shares(scores, labelled_weights)
        entropy = entr(shares).sum(axis=1)
        deviations = np.abs(shares - shares.mean(axis=1, keepdims=True)).sum(axis=1)
        measures = {
            "normalized_similarity_mad": spread,
            "retrieval_mad": deviations.mean(axis=0),
            "retrieval_entropy": entropy.mean(axis=0) / np.log(len(self._present)),
            ASSOCIATION: (means[0, :, 0] - means[1, :, 0]) - (means[0, :, 1] - means[1, :, 1]),
        }
        for name, hit in hits.items():
            measures[name] = _weighted_means(hit[:, None], weights)[:, 0]
        return measures

    def _retrieval_shares(self, scores: Floats, weights: Floats) -> Floats:
        """Return the groups' shares of the top k, (groups, replicates), of each concept in turn."""
        shares = []
        for concept in scores.T:
            order = np.argsort(-concept, kind="stable")
            # Draws with repeats reach k within few images; all are needed where one draw doesn't.
            first = order[: _ENOUGH * self.k]
            if (weights[:, first].sum(axis=1) < self.k).any():
                first = order
            ordered, codes = weights[:, first], self.grouped.codes[first]
            before = ordered.cumsum(axis=1) - ordered
            retrieved = np.clip(self.k - before, 0.0, ordered)
            counts = np.stack([retrieved[:, codes == code].sum(axis=1) for code in self._present])
            shares.append(counts / self.k)
        return np.stack(shares)


def _score_function(model: Model, images: Images) -> Callable[[Sequence[Sequence[str]]], Floats]:
    """Return a function from lists of texts to scores of images, (n, lists)."""
    if isinstance(model, DualEncoder):
        vectors = unit_vectors(embed_images(model, images))

        def cosines(texts: Sequence[Sequence[str]]) -> Floats:
            with unwarned():
                return np.asarray(vectors @ embed_prompts(model, texts).T)

        return cosines
    if isinstance(model, PairScorer):
        pictures = [images[row] for row in range(len(images))]

        def matches(texts: Sequence[Sequence[str]]) -> Floats:
            scores = model.score(pictures, [*chain.from_iterable(texts)])
            starts = np.cumsum([0, *map(len, texts)])[:-1]
            return np.add.reduceat(scores, starts, axis=1) / [*map(len, texts)]

        return matches
    raise InputError(
        f"{type(model).__name__}: a trial compares images with texts. "
        "To do: give a dual encoder; measure a classifier by its predictions"
    )


def _first_ranks(scores: Floats, own: Floats, rows: Positions) -> Callable[[int], Floats]:
    """Return a function from k to the chance that one of a row's own columns is among its first k.

    Equal scores are in random order: 1 where all equal scores are the row's own.
    """
    best = np.full(len(scores), -np.inf)
    np.maximum.at(best, rows, own)
    above = (scores > best[:, None]).sum(axis=1)
    equal = (scores == best[:, None]).sum(axis=1)
    own_equal = np.bincount(rows, own == best[rows], minlength=len(scores))
    return lambda k: np.clip((k - above) * own_equal / np.maximum(equal, 1), 0.0, 1.0)


def _recall_hits(
    compare: Callable[[Sequence[Sequence[str]]], Floats], captions: Sequence[str], rows: Positions
) -> dict[str, Floats]:
    """Return recall at k per image: from image to a caption of its own, back, and their mean.

    Parameters
    ----------
    compare : callable
        From lists of texts to scores of images.
    captions : sequence of m str
    rows : ndarray of int64, shape (m,)
        Image of each caption. Of an image's several captions, the mean counts that find an image
        with this caption.
    """
    texts, places = np.unique(np.array(captions, dtype=str), return_inverse=True)
    scores = compare([[text] for text in texts.tolist()])
    own_rows, own_texts = np.unique(np.stack([rows, places]), axis=1)
    own = scores[own_rows, own_texts]
    by_image = _first_ranks(scores, own, own_rows)
    by_text = _first_ranks(scores.T, own, own_texts)
    sizes = np.maximum(np.bincount(rows, minlength=len(scores)), 1)
    text = {k: by_image(k) for k in _RECALLS}
    image = {
        k: np.bincount(rows, by_text(k)[places], minlength=len(scores)) / sizes for k in _RECALLS
    }
    both = {k: (text[k] + image[k]) / 2.0 for k in _RECALLS}
    return {
        f"{direction}recall_at_{k}": hits
        for direction, by_k in (("text_", text), ("image_", image), ("", both))
        for k, hits in by_k.items()
    }


def _recalls(
    compare: Callable[[Sequence[Sequence[str]]], Floats], pairs: RetrievalSet
) -> dict[str, Floats]:
    """Return recall per image, also with the neutral captions where there are any."""
    rows = np.arange(len(pairs.images)) if pairs.image is None else pairs.image
    measures = dict[str, Floats]()
    for variant in pairs.variants:
        suffix = "" if variant is pairs else f", {NEUTRAL}"
        for name, hits in _recall_hits(compare, variant.caption.tolist(), rows).items():
            measures[name + suffix] = hits
    return measures


def _weighted_means(values: Floats, weights: Floats) -> Floats:
    """Return weighted means, (replicates, columns); NaN where nothing counts."""
    with unwarned():
        return np.asarray((weights @ values) / weights.sum(axis=1, keepdims=True))


def compare_models(
    before: Model,
    after: Model,
    trial: Trial,
    *,
    replicates: int = 1000,
    seed: int = 0,
) -> pa.Table:
    """Measure two models on the same images.

    Parameters
    ----------
    before, after : DualEncoder or PairScorer
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
    first = trial.draws(before, replicates, seed)
    second = trial.draws(after, replicates, seed)
    return pa.Table.from_pylist(change_rows(first, second))


def change_rows(
    before: Mapping[str, Floats], after: Mapping[str, Floats]
) -> list[dict[str, str | float]]:
    """Return each measure before, after and their difference, with intervals."""
    rows = []
    for name, first in before.items():
        row: dict[str, str | float] = {"measure": name}
        second = after[name]
        for column, draws in (("before", first), ("after", second), ("difference", second - first)):
            low, high = percentile(draws[1:], 0.95)
            row |= {
                column: float(draws[0]),
                f"{column}_low": float(low),
                f"{column}_high": float(high),
            }
        rows.append(row)
    return rows
