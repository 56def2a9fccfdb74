"""Measures of a model before and after, tests of their change, and the conclusion."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from equipoise.core import (
    AnyArray,
    Estimate,
    Floats,
    Floats32,
    ModelError,
    Objects,
    Positions,
    Progress,
    record,
)
from equipoise.core.wording import number
from equipoise.metrics import SPECS, cosine_scores, ndkl, similarity_gap
from equipoise.metrics.rankings.statistics import recall_hits
from equipoise.mitigate.sets import ImageSets, Lookup, SubjectTexts
from equipoise.models.images import Images
from equipoise.models.protocols import DualEncoder
from equipoise.models.wrapped import unit_vectors
from equipoise.stats.chance import benjamini_hochberg, sign_flips
from equipoise.stats.intervals import mean_t
from equipoise.stats.streams import stream

Numbers = dict[tuple[str, str], dict[str, float]]
"""By measure and by attribute or data set: numbers of units by name."""

ACCURACY = "accuracy"
"""What the share of images or queries that are right is called, whoever decides it."""
SHARE_GAP = "share_gap"
"""What the distance of generated values from equal shares is called."""
NEUTRAL = "neutral captions"
"""What recall with captions that don't name the attribute is called."""
RANKS = (1, 5, 10)
_PART = 256


def embed_images(model: DualEncoder, images: Images, progress: Progress | None = None) -> Floats32:
    """Return vectors of images, (n, dimension), not normalised.

    Raises
    ------
    ModelError
        When a vector is zero or not finite.
    """
    return map_image_vectors(model, images, lambda vectors: vectors, progress)


def map_image_vectors(
    model: DualEncoder,
    images: Images,
    function: Callable[[Floats32], AnyArray],
    progress: Progress | None = None,
) -> AnyArray:
    """Apply a function to image vectors, part by part, to save memory."""
    outputs: AnyArray = np.empty((0, model.info.dimension or 0), dtype=np.float32)
    for start in range(0, len(images), _PART):
        if progress is not None:
            progress("embedding images", start, len(images))
        rows = range(start, min(start + _PART, len(images)))
        part = function(_check_finite(model.embed_images([images[row] for row in rows]), model))
        if not start:
            outputs = np.empty((len(images), part.shape[1]), dtype=part.dtype)
        outputs[start : rows.stop] = part
    return outputs


def embed_prompts(model: DualEncoder, prompts: Sequence[Sequence[str]]) -> Floats:
    """Return the mean unit vector of each group of prompts, of length 1."""
    vectors = embed_unit_texts(model, [*chain.from_iterable(prompts)])
    ends = np.cumsum([*map(len, prompts)])[:-1]
    return unit_vectors(np.stack([part.mean(axis=0) for part in np.split(vectors, ends)]))


def embed_unit_texts(model: DualEncoder, texts: Sequence[str]) -> Floats:
    """Return unit vectors of texts, (n, dimension).

    Raises
    ------
    ModelError
        When a vector is zero or not finite.
    """
    return unit_vectors(_check_finite(model.embed_texts(texts), model))


def _check_finite(vectors: Floats32, model: DualEncoder) -> Floats32:
    if not (np.isfinite(vectors).all() and (np.abs(vectors).max(axis=1) > 0).all()):
        raise ModelError(
            f"{model.info.name} gave a vector that is zero or not finite. To do: dtype: float32"
        )
    return vectors


@record
class ZeroShotSet:
    """Images with a class each, and the prompts of every class.

    Attributes
    ----------
    name : str
    images : sequence of n images
    label : ndarray of str objects, shape (n,)
    prompts : mapping of str to sequence of str
        By class.
    """

    name: str
    images: Any
    label: Objects
    prompts: Mapping[str, Sequence[str]]


@record
class RetrievalSet:
    """Images and captions that belong to them.

    Attributes
    ----------
    name : str
    images : sequence of n images
    caption : ndarray of str objects, shape (m,)
        A text that stands there for several images belongs to each of them.
    about : ndarray of str objects, shape (n,), optional
        Subject of each image, so that a model can be measured on some subjects alone.
    image : ndarray of int64, shape (m,), optional
        Row of each caption's image; each image has one caption, in order, unless given.
    neutral : ndarray of str objects, shape (m,), optional
        Each caption without the attribute that it names: recall is measured with these, too.
    """

    name: str
    images: Any
    caption: Objects
    about: Objects | None = None
    image: Positions | None = None
    neutral: Objects | None = None

    @property
    def variants(self) -> tuple[Self, ...]:
        """The set, and the set with its neutral captions where it has them."""
        if self.neutral is None:
            return (self,)
        named = f"{self.name}, {NEUTRAL}" if self.name else NEUTRAL
        return (self, replace(self, name=named, caption=self.neutral, neutral=None))

    @property
    def notes(self) -> tuple[str, ...]:
        """How often a guess of the attribute finds the caption of an image."""
        if self.neutral is None:
            return ()
        captions: dict[str, set[str]] = {}
        for neutral, caption in zip(self.neutral.tolist(), self.caption.tolist(), strict=True):
            captions.setdefault(neutral, set()).add(caption)
        guessed = np.mean([1 / len(captions[neutral]) for neutral in self.neutral.tolist()])
        about = f"{self.name}: " if self.name else ""
        return (
            f"{about}a model without the attribute guesses among captions that differ in it alone, "
            f"and has a text recall at 1 of {number(100 * float(guessed), 1)} % on average.",
        )


@record
class Test:
    """Data that models are measured on.

    Attributes
    ----------
    images : ImageSets
        Counterfactual sets.
    texts : mapping of str to SubjectTexts
        By subject, of all subjects in `images`.
    zero_shot : tuple of ZeroShotSet
    retrieval : tuple of RetrievalSet
    """

    images: ImageSets
    texts: Mapping[str, SubjectTexts]
    zero_shot: tuple[ZeroShotSet, ...] = ()
    retrieval: tuple[RetrievalSet, ...] = ()

    __test__ = False  # no class of tests, as pytest would take it for

    def notes(self) -> tuple[str, ...]:
        """Return how often a guess of the attribute finds a caption."""
        return tuple(chain.from_iterable(pairs.notes for pairs in self.retrieval))

    def of(self, subjects: Collection[str]) -> Test:
        """Return the same with the counterfactual sets of some subjects alone."""
        return replace(self, images=self.images.of(subjects))

    def measure(
        self,
        model: DualEncoder,
        *,
        only: Collection[str] | None = None,
        progress: Progress | None = None,
    ) -> ModelMeasures:
        """Measure one model.

        Parameters
        ----------
        model : DualEncoder
        only : collection of str, optional
            Subjects to measure; the classes and the images they are to be found among stay all.
        progress : callable, optional

        Returns
        -------
        ModelMeasures
        """
        utility: Numbers = {}
        for images in self.zero_shot:
            rows = _select_rows(images.label, only)
            subset = Lookup([(images.images, row) for row in rows.tolist()])
            classes = np.array([*images.prompts], dtype=object)
            scores = _cosines(
                model, subset, embed_prompts(model, [*images.prompts.values()]), progress
            )
            correct = classes[scores.argmax(axis=1)] == images.label[rows]
            utility[ACCURACY, images.name] = _by_name(rows, correct.astype(np.float64))
        for pairs in chain.from_iterable(sources.variants for sources in self.retrieval):
            utility |= _recalls(model, pairs, only, progress)
        sets = self.images if only is None else self.images.of(only)
        return ModelMeasures(_bias(model, sets, self.texts, progress), utility)


@dataclass(frozen=True)
class ModelMeasures:
    """Measures of one model.

    Attributes
    ----------
    bias : mapping of (str, str) to mapping of str to float
        By measure and attribute, a number for each subject: 0 or above, lower is better.
    utility : mapping of (str, str) to mapping of str to float
        By measure and data set, a number for each image or query, by its name: higher is better.
    chance : mapping
        Levels of `bias` that chance alone gives, where these are known.
    """

    bias: Numbers
    utility: Numbers
    chance: Numbers = field(default_factory=dict)

    def merge(self, other: ModelMeasures) -> ModelMeasures:
        """Return these measures and the measures of other subjects together."""
        return ModelMeasures(
            _merge_numbers(self.bias, other.bias),
            _merge_numbers(self.utility, other.utility),
            _merge_numbers(self.chance, other.chance),
        )


def _merge_numbers(first: Numbers, second: Numbers) -> Numbers:
    merged = {key: dict(values) for key, values in first.items()}
    for key, values in second.items():
        merged.setdefault(key, {}).update(values)
    return merged


def _bias(
    model: DualEncoder,
    images: ImageSets,
    texts: Mapping[str, SubjectTexts],
    progress: Progress | None,
) -> Numbers:
    subjects = images.subjects
    # These read vectors in float32 block by block, and take cosines of them in float64.
    scores = cosine_scores(
        embed_images(model, images.images, progress),
        embed_prompts(model, [texts[name].neutral for name in subjects]),
        names=subjects,
    )
    # One image for each combination of values, and prefixes up to its square.
    combinations = {*zip(*images.attributes.values(), strict=True)}
    max_k = max(1, min(Counter(images.subject).values()) - 1)
    k = min(len(combinations), max_k)
    shared: dict[str, Any] = {"queries": images.subject, "sets": images.set, "resampling": None}
    numbers: Numbers = {}
    for attribute, groups in images.attributes.items():
        for estimate in (
            ndkl(scores, groups, k=min(k * k, max_k), **shared),
            similarity_gap(scores, groups, scale=model.info.scale or 1.0, **shared),
        ):
            numbers[estimate.metric, attribute] = _by_subject(estimate, subjects)
    return numbers


def _by_subject(estimate: Estimate, subjects: Sequence[str]) -> dict[str, float]:
    if len(subjects) == 1 and not estimate.parts:
        return {subjects[0]: estimate.value}
    values = dict.fromkeys(subjects, math.nan)
    for part in estimate.parts:
        # Of three groups or more there are also differences of each from the others.
        of_all = (part.metric, part.aggregate) == (estimate.metric, estimate.aggregate)
        if of_all and part.subject in values:
            values[part.subject] = part.value
    return values


def _cosines(model: DualEncoder, images: Any, texts: Floats, progress: Progress | None) -> Floats:
    """Return cosines of images and unit text vectors, (images, texts)."""
    return map_image_vectors(
        model, images, lambda vectors: unit_vectors(vectors) @ texts.T, progress
    )


def _select_rows(labels: Objects, only: Collection[str] | None) -> Positions:
    if only is None:
        return np.arange(len(labels))
    return np.flatnonzero([label in only for label in labels])


def _by_name(names: AnyArray, numbers: Floats) -> dict[str, float]:
    return dict(zip(names.astype(str).tolist(), numbers.tolist(), strict=True))


def _recalls(
    model: DualEncoder,
    pairs: RetrievalSet,
    only: Collection[str] | None,
    progress: Progress | None,
) -> Numbers:
    texts, caption_codes = np.unique(pairs.caption.astype(str), return_inverse=True)
    relevant = np.zeros((len(pairs.images), len(texts)), dtype=bool)
    relevant[
        np.arange(len(caption_codes)) if pairs.image is None else pairs.image, caption_codes
    ] = True
    scores = _cosines(model, pairs.images, embed_unit_texts(model, texts.tolist()), progress)
    rows = np.arange(len(scores)) if pairs.about is None else _select_rows(pairs.about, only)
    about = relevant[rows].any(axis=0)
    numbers: Numbers = {}
    for k in RANKS:
        if k <= len(texts):
            hits = recall_hits(scores[rows], relevant[rows], k=k, to="texts")
            numbers[f"text_recall_at_{k}", pairs.name] = _by_name(rows, hits)
        if k <= len(scores):
            hits = recall_hits(scores[:, about], relevant[:, about], k=k, to="images")
            numbers[f"image_recall_at_{k}", pairs.name] = _by_name(texts[about], hits)
    return numbers


ROLES = ("bias", "utility")
HALFWAY = 0.5
"""Share of the way to the floor at which a recipe transfers."""

MARGIN = 0.02
"""Largest allowed fall of accuracy or a recall."""

ALPHA = 0.05
REPLICATES, FLIPS = 2000, 100_000
FEWEST = 6
"""Fewest units with which flipped signs can reach p 0.05: of 5 the smallest p is 2 / 32."""
_TIE = 1e-12

_NAMES = {ACCURACY: "zero-shot accuracy", SHARE_GAP: "share gap"}


@dataclass(frozen=True, kw_only=True)
class PairedChange:
    """A mean before and after, over units.

    Attributes
    ----------
    n : int
        Units.
    before, after, difference : float
        Means over units; after less before.
    low, high : float
        Student's 95 % interval of the difference, as when models are compared; NaN with fewer than
        `FEWEST` units, of which the test can show nothing either.
    p_value : float
        Two-sided, of differences whose signs are exchangeable; NaN with fewer than two units.
    test : str
    """

    n: int
    before: float = math.nan
    after: float = math.nan
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan
    test: str = "none: fewer than two units"


def compare_pairs(before: npt.ArrayLike, after: npt.ArrayLike, *, seed: int) -> PairedChange:
    """Compare numbers of the same units.

    Parameters
    ----------
    before, after : array-like of float, shape (units,)
        Units in which either is NaN are left out.
    seed : int
    """
    pair = _complete_units(before, after)
    n = len(pair)
    if n == 0:
        return PairedChange(n=0)
    differences = pair[:, 1] - pair[:, 0]
    low, high = mean_t(differences) if n >= FEWEST else (math.nan, math.nan)
    first, second = pair.mean(axis=0).tolist()
    change = PairedChange(
        n=n, before=first, after=second, difference=second - first, low=float(low), high=float(high)
    )
    if n < 2:
        return change
    flips = sign_flips(differences, permutations=FLIPS, seed=seed)
    signs = "all" if flips.method == "exact" else f"{FLIPS} draws of the"
    return replace(change, p_value=flips.value, test=f"{signs} signs of the differences")


def _complete_units(*columns: npt.ArrayLike) -> Floats:
    """Return units with all numbers, (units, columns)."""
    units = np.stack([np.asarray(column, np.float64) for column in columns], axis=1)
    return units[~np.isnan(units).any(axis=1)]


def estimate_share_of_way(
    before: npt.ArrayLike, after: npt.ArrayLike, floor: npt.ArrayLike, *, seed: int
) -> dict[str, Any]:
    """Return the share of the way to a floor, resampled over units.

    Parameters
    ----------
    before, after, floor : array-like of float, shape (units,)
        Units in which one is NaN are left out.
    seed : int
        The same units are drawn for every number.

    Returns
    -------
    dict
        `share`, `share_low`, `share_high` and `share_reason` of a `Row`. The 95 % interval is NaN
        with fewer than `FEWEST` units: draws of so few lie within their own range. The share is
        not estimable, and the reason is told, with fewer than two units, and where the number
        before is not clear of the floor: its excess over it is not above 0, or the 95 % interval
        of that is not.
    """
    units = _complete_units(before, after, floor)
    n = len(units)
    if n < 2:
        return {"share_reason": "fewer than two subjects have all three numbers"}
    means = units.mean(axis=0)
    draw = stream(seed, "mitigate", "paired", "subjects", n)
    replicate_means = draw.multinomial(n, np.full(n, 1.0 / n), size=REPLICATES) @ units / n
    ways = replicate_means[:, 0] - replicate_means[:, 2]
    way = float(means[0] - means[2])
    if not (way > _TIE and np.percentile(ways, 2.5) > _TIE):
        return {"share_reason": "the number before is not clear of the floor"}
    # Fewer than 2.5 % of the draws have no way at all; a share of it would have no sign.
    positive = ways > _TIE
    shares = (replicate_means[positive, 0] - replicate_means[positive, 1]) / ways[positive]
    low, high = (math.nan, math.nan) if n < FEWEST else np.percentile(shares, [2.5, 97.5])
    share = float(means[0] - means[1]) / way
    return {"share": share, "share_low": float(low), "share_high": float(high)}


@dataclass(frozen=True, kw_only=True)
class Row(PairedChange):
    """One number of one recipe, before and after, over subjects, images or queries.

    Attributes
    ----------
    recipe, role, measure, about : str
        `role` is "bias" or "utility"; `about` the attribute, or the data set.
    q_value : float
        Over all recipes.
    floor : float
        The same number of a model without the bias, where one was given; NaN without.
    share, share_low, share_high, share_reason
        Share of the way to the floor; see `estimate_share_of_way`.
    """

    recipe: str
    role: str
    measure: str
    about: str
    q_value: float = math.nan
    floor: float = math.nan
    share: float = math.nan
    share_low: float = math.nan
    share_high: float = math.nan
    share_reason: str = ""

    @property
    def lowered(self) -> bool:
        """Whether a bias fell significantly (q-value)."""
        return self.role == "bias" and self.difference < 0 and self.q_value < ALPHA

    @property
    def _half(self) -> float:
        """Half of the excess over the floor, or over 0 without a floor."""
        return HALFWAY * (self.before - (0.0 if math.isnan(self.floor) else self.floor))

    @property
    def reaches(self) -> bool:
        """Whether a bias fell at least halfway to the floor, or to 0 without a floor.

        The test is of the fall; that it went halfway is the estimate. A bias that is not clear of
        the floor has no half.
        """
        return not self.share_reason and self.lowered and self.before - self.after >= self._half

    @property
    def open(self) -> bool:
        """Whether a bias may have fallen halfway, although no fall is significant.

        So few units that there is no interval leave everything open.
        """
        reaches = math.isnan(self.low) or self.low <= -self._half
        unshown = self.role == "bias" and not self.lowered and not self.share_reason
        return unshown and reaches and self._half > 0

    def withheld(self, reason: str) -> Self:
        """Return the numbers of both models without test and intervals of their difference."""
        return replace(
            self, p_value=math.nan, q_value=math.nan, low=math.nan, high=math.nan,
            share=math.nan, share_low=math.nan, share_high=math.nan, share_reason=reason,
        )  # fmt: skip


def assess(
    before: ModelMeasures,
    after: Mapping[str, ModelMeasures],
    floor: ModelMeasures | None,
    *,
    seed: int = 0,
) -> tuple[Row, ...]:
    """Compare the measures before and after each recipe.

    Parameters
    ----------
    before : ModelMeasures
        Of the base model.
    after : mapping of str to ModelMeasures
        By recipe, of the same subjects, images and queries.
    floor : ModelMeasures, optional
        Of a model without the bias.
    seed : int

    Returns
    -------
    tuple of Row
        Biases of all recipes, then utilities; q-values after Benjamini and Hochberg, over all rows
        of either.
    """
    rows: list[Row] = []
    for role in ROLES:
        floors: Numbers | None = getattr(floor, role, None)
        role_rows = []
        for recipe, measured in after.items():
            changed: Numbers = getattr(measured, role)
            for key, values in changed.items():
                if not values:
                    continue
                units = sorted(values)
                first = getattr(before, role)[key]
                numbers = [[column[unit] for unit in units] for column in (first, values)]
                row = Row(
                    recipe=recipe, role=role, measure=key[0], about=key[1],
                    **vars(compare_pairs(*numbers, seed=seed)),
                )  # fmt: skip
                if floors:
                    numbers.append([floors[key][unit] for unit in units])
                    row = replace(row, floor=sum(numbers[2]) / len(units))
                    if role == "bias":
                        row = replace(row, **estimate_share_of_way(*numbers, seed=seed))
                role_rows.append(row)
        q_values = benjamini_hochberg([row.p_value for row in role_rows]).tolist()
        rows += [replace(row, q_value=q) for row, q in zip(role_rows, q_values, strict=True)]
    return tuple(rows)


@dataclass(frozen=True)
class Outcome:
    """The conclusion about one recipe.

    Attributes
    ----------
    recipe : str
    conclusion : str
        "transfers": every bias of withheld subjects fell (q < 0.05), by the estimate at least
        halfway to the floor, accuracy was measured, and neither it nor a recall fell by more than
        the margin on any set; "transfers in part", "does not transfer", "costs too much": a bias
        fell, and accuracy or a recall by more than the margin; "price not measured": halfway,
        without a set to measure accuracy on; or "not enough data": no fall is shown, and an
        interval leaves open that it fell halfway, or no bias is clear of the floor.
    sentence : str
        Sentences without a stop at the end; the first begins in lower case, to follow a colon.
    """

    recipe: str
    conclusion: str
    sentence: str


def conclude(rows: Sequence[Row]) -> tuple[Outcome, ...]:
    """Return the conclusion about each recipe: whether it transfers, and its price."""
    results = []
    for recipe in dict.fromkeys(row.recipe for row in rows):
        recipe_rows = [row for row in rows if row.recipe == recipe]
        biases = [row for row in recipe_rows if row.role == "bias"]
        utilities = _prices(recipe_rows)
        results.append(
            Outcome(recipe, _conclusion(biases, utilities), _sentence(biases, utilities))
        )
    return tuple(results)


def _prices(rows: Sequence[Row]) -> list[Row]:
    """Return accuracy and recall, of captions that name the attribute only where none don't."""
    utilities = [row for row in rows if row.role == "utility"]
    names = {row.about for row in utilities}
    return [row for row in utilities if f"{row.about}, {NEUTRAL}" not in names]


def _conclusion(biases: Sequence[Row], utilities: Sequence[Row]) -> str:
    """Return the conclusion of `Outcome` for the rows of a recipe."""
    # A disparity that is not clear of the floor leaves nothing to lower halfway.
    clear = [row for row in biases if not row.share_reason]
    lowered = any(row.lowered for row in clear)
    if lowered and any(row.difference < -MARGIN for row in utilities):
        return "costs too much"
    if lowered and not all(row.reaches for row in clear):
        return "transfers in part"
    if not clear or any(row.open for row in clear):
        return "not enough data"
    if not lowered:
        return "does not transfer"
    if any(row.measure == ACCURACY for row in utilities):
        return "transfers"
    return "price not measured"


def name_measure(measure: str) -> str:
    """Return the name of a measure within a sentence."""
    spec = SPECS.get(measure)
    return _NAMES.get(measure) or (spec.label if spec else measure.replace("_", " "))


def _sentence(biases: Sequence[Row], utilities: Sequence[Row]) -> str:
    """Describe the changed disparities and the worst loss of accuracy and recall."""
    counts: Counter[str] = Counter()
    for row in biases:
        counts["fell"] += row.lowered
        counts["halfway"] += row.reaches
        counts["rose"] += row.q_value < ALPHA and not row.lowered
        counts["open"] += row.open
        counts["untested" if math.isnan(row.p_value) else "unclear"] += bool(row.share_reason)
    other_counts = {
        "may have fallen halfway": counts["open"], "rose": counts["rose"],
        "not clear of the floor before": counts["unclear"], "without a test": counts["untested"],
    }  # fmt: skip
    n, half = len(biases), "by at least half of the way"
    text = (
        f"{counts['fell']} of {n} disparities about new subjects fell (q < {ALPHA}), "
        f"{counts['halfway']} {half}"
    )
    if n > 1 and counts["fell"] == counts["halfway"] == n:
        text = f"all {n} disparities about new subjects fell {half} (q < {ALPHA})"
    for label, count in other_counts.items():
        if count:
            text += f", {count} {label}"
    changes: dict[str, list[float]] = {ACCURACY: [], "recall": []}
    for row in utilities:
        name = "recall" if "recall" in row.measure else name_measure(row.measure).split()[-1]
        changes.setdefault(name, []).append(row.difference)
    if len(changes) > 2:
        del changes["recall"]
    for name, differences in changes.items():
        worst = f"{number(100 * min(differences), 1)} points" if differences else "not measured"
        text += f". Worst change in {name}: {worst}"
    return text
