"""Quality of sets of images: against reference images, within sets, and by subject."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import xlogy

from equipoise.core.arrays import Floats, Integers
from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, Estimate, no_ends
from equipoise.core.labels import encode
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import SPREAD, MovedPercentile, bootstrap_method, ends_of
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.metrics.values.labels import Share, share_method
from equipoise.metrics.values.units import Units
from equipoise.metrics.vectors.sets import embedding_table
from equipoise.stats.chance import band
from equipoise.stats.resampling import Bootstrap, Resampling
from equipoise.stats.streams import Seed, seed_of, stream, unit_counts, unit_keys

THRESHOLD, MARGIN = 0.95, 0.1
"""Cosine from which the encoder takes two subjects' texts for one; and how far above chance its
zero-shot accuracy has to be for a subject to be told from the others."""

# Multiplications that resampling may take: some twenty seconds on one core.
_MOST_WORK = 100_000_000_000
_FEWEST = 20
# Parts of the sets from which the distance is extrapolated, in so many orders.
_SHARES, _ORDERS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0), 4
# Numbers that exchanged sets may sum: some seconds; and the fewest exchanges.
_MOST_SUMMED, _FEWEST_EXCHANGES = 1_000_000_000, 50


def _numbers(table: Any, what: str) -> Floats:
    """Return a table (n, d) of finite numbers, neither of them 0."""
    rows = np.asarray(embedding_table(table, what), dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise InputError(f"{what}: row {bad[0] + 1} has numbers that are not finite ({len(bad)})")
    return rows


def frechet_distance(
    features: Any,
    reference: Any,
    *,
    units: Any = None,
    resampling: Resampling | None = Bootstrap(200),  # noqa: B008 - frozen
    rng: Seed = 0,
) -> Estimate:
    """Fréchet distance of the normal distributions fitted to two sets of features.

    |μ1 − μ2|² + tr(Σ1 + Σ2 − 2 (Σ1 Σ2)^½), covariances with n − 1.

    Parameters
    ----------
    features : array-like, shape (n, d)
        Of the images that are judged, such as an Inception network's for the FID.
    reference : array-like, shape (m, d)
        Of the images they are compared with, in the same space.
    units : array-like, shape (n,), optional
        Features that are resampled together, such as those of a counterfactual set.
    resampling : Bootstrap, Permutation or None
        None gives the value alone. Where dimensions are many, fewer replicates are made than
        asked for; the method says how many.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        0 or above, lower: closer to the reference. Descriptive: no chance level. The value is
        biased upward where images are few, the more so the more dimensions; `.by` has
        "frechet_distance_extrapolated", what it tends to as both sets grow (a straight line in
        one over the number of images), and `params["bias"]` the difference. The interval is a
        spread: percentiles of resampled sets, moved to the value, for resampling adds to the
        bias.

    Raises
    ------
    InputError
        When an array is not (n, d) finite numbers with n of 2 or more, or dimensions differ.

    References
    ----------
    Dowson & Landau 1982; Heusel et al. 2017, NeurIPS; Chong & Forsyth 2020, CVPR.
    """
    pair = _numbers(features, "features"), _numbers(reference, "reference")
    (n, d), (m, space) = (rows.shape for rows in pair)
    if min(n, m) < 2 or d != space:
        raise InputError(f"features and reference: {(n, d)}, {(m, space)}; expected 2 rows or more")
    owners = Units.of(units, n), Units.of(None, m)

    def distance(times: Iterable[Floats]) -> float:
        """Return the distance where units count so many times."""
        (mean, factor), (mean_2, factor_2) = (
            _moments(rows, some[owner.codes])
            for rows, owner, some in zip(pair, owners, times, strict=True)
        )
        product = factor.T @ factor_2
        if not np.isfinite(product).all():
            return math.nan
        # The trace of (Σ1 Σ2)^½ is the sum of the singular values of F1ᵀ F2.
        shared = float(np.linalg.svd(product, compute_uv=False).sum())
        apart = float(np.square(mean - mean_2).sum())
        spread = float(np.square(factor).sum() + np.square(factor_2).sum())
        return max(0.0, apart + spread - 2.0 * shared)

    sizes = [len(one.names) for one in owners]
    value, limit = distance(map(np.ones, sizes)), math.nan
    ends: Ends = no_ends
    if resampling is not None and min(sizes) >= _FEWEST:
        limit = _extrapolated(distance, sizes, rng)
    method = NO_INTERVAL if resampling is None else "none: use Bootstrap()"
    if isinstance(resampling, Bootstrap):
        work = sum(k * d * min(k, d) + 10 * min(k, d) ** 3 for k in (n, m))
        many = min(resampling.replicates, max(_FEWEST, int(_MOST_WORK / work)))
        times = [one.times(many, seed_of(rng) + place) for place, one in enumerate(owners)]
        ends = MovedPercentile(value, [*map(distance, zip(*times, strict=True))], 0.0)
        method = (
            f"{SPREAD}: percentiles of {many} resamples of the {owners[0].name}s of both sets, "
            "moved to the value; not a confidence interval: resampled sets lie further apart"
        )
    few = NO_INTERVAL if resampling is None else "too few units to leave some of them out"
    reason = few if math.isnan(limit) else ""
    part = Part("frechet_distance_extrapolated", "", limit, n=n + m, reason=reason)
    return make_estimate(
        metric="frechet_distance",
        value=value,
        n={"images": n, "reference": m},
        method=method,
        params={"dimensions": d, "bias": value - limit},
        no_chance="none: it depends on the encoder and the number of images; compare with sets of "
        "the same sizes",
        by=parts_to_table([part]),
        unit=owners[0].name,
        ends=ends,
    )


def _moments(rows: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the weighted mean, and a factor F of the covariance F Fᵀ, shape (d, r)."""
    total = weights.sum()
    if total < 2:
        nothing = np.full(rows.shape[1], np.nan)
        return nothing, nothing[:, None]
    kept = weights > 0
    rows, weights = rows[kept], weights[kept]
    mean = np.einsum("n,nd->d", weights, rows) / total
    centred = np.sqrt(weights / (total - 1))[:, None] * (rows - mean)
    if len(centred) <= centred.shape[1]:
        return mean, centred.T
    values, vectors = np.linalg.eigh(centred.T @ centred)
    return mean, vectors * np.sqrt(np.maximum(values, 0.0))


def _extrapolated(
    distance: Callable[[Iterable[Floats]], float], sizes: Sequence[int], seed: Seed
) -> float:
    """Return where a straight line through distances of parts of the sets meets endless ones."""
    found = []
    for order in range(_ORDERS):
        orders = [
            stream(seed, "frechet", place, order).permutation(size)
            for place, size in enumerate(sizes)
        ]
        for share in _SHARES:
            # Whether each unit is among the first of its order.
            kept = [np.argsort(one) < max(2, round(share * len(one))) for one in orders]
            found.append(distance([one.astype(np.float64) for one in kept]))
    if not np.isfinite(found).all():
        return math.nan
    return float(np.polyfit(1.0 / np.tile(_SHARES, _ORDERS), found, 1)[1])


def inception_score(
    probabilities: Any,
    *,
    units: Any = None,
    resampling: Resampling | None = Bootstrap(200),  # noqa: B008 - frozen
    rng: Seed = 0,
) -> Estimate:
    """Exponential of the mean divergence of each image's class probabilities from their mean.

    exp(mean over images of KL(p(class | image) ‖ p(class))), in nats.

    Parameters
    ----------
    probabilities : array-like, shape (n, classes)
        Of a classifier, or of a dual encoder's zero-shot classes; rows sum to 1.
    units : array-like, shape (n,), optional
        What is resampled together.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        1 to the number of classes, higher: each image looks like one class, and all classes are
        there. Descriptive: it says nothing of images within a class, and depends on the
        classifier; biased upward where images are few. The interval is a spread.

    Raises
    ------
    InputError
        When rows are no probabilities.

    References
    ----------
    Salimans et al. 2016, NeurIPS; Barratt & Sharma 2018.
    """
    rows = _numbers(probabilities, "probabilities")
    wrong = (rows < 0).any(axis=1) | (np.abs(rows.sum(axis=1) - 1.0) > 1e-3)
    if wrong.any():
        raise InputError(
            f"probabilities: row {int(wrong.argmax()) + 1} is no distribution. Pass "
            "probabilities, such as the softmax of logits"
        )
    rows, owner = rows / rows.sum(axis=1, keepdims=True), Units.of(units, len(rows))
    value = _score(rows, np.ones(len(rows)))
    ends: Ends = no_ends
    method = NO_INTERVAL if resampling is None else "none: use Bootstrap()"
    if isinstance(resampling, Bootstrap):
        times = owner.times(resampling.replicates, rng)
        ends = MovedPercentile(value, [_score(rows, one[owner.codes]) for one in times], 1.0)
        method = (
            f"{SPREAD}: percentiles of {resampling.replicates} resamples, moved to the value; not "
            "a confidence interval: the score is biased where images are few"
        )
    return make_estimate(
        metric="inception_score",
        value=value,
        n={"images": len(rows)},
        method=method,
        params={"classes": rows.shape[1]},
        no_chance="none: no groups are exchanged; the score grows where images are few",
        unit=owner.name,
        ends=ends,
    )


def _score(rows: Floats, weights: Floats) -> float:
    total = weights.sum()
    if not total:
        return math.nan
    mean = np.einsum("n,nc->c", weights, rows) / total
    # KL(p ‖ mean) summed: classes that no image has contribute nothing.
    own = float(np.einsum("n,nc->", weights, xlogy(rows, rows)) / total)
    return math.exp(max(0.0, own - float(xlogy(mean, mean).sum())))


def _exchanged_sets(
    unit: Floats,
    own: Integers,
    strata: Integers,
    sets: int,
    permutations: int,
    rng: Seed,
) -> list[float]:
    """Return the mean similarity when images of a stratum change places between sets."""
    draws = max(_FEWEST_EXCHANGES, _MOST_SUMMED // max(unit.size, 1))
    generator, null = stream(rng, "set similarity"), []
    blocks = [np.flatnonzero(strata == one) for one in np.unique(strata)]
    for _ in range(min(draws, permutations)):
        mixed = own.copy()
        for some in blocks:
            mixed[some] = own[generator.permutation(some)]
        drawn, sizes = _set_means(unit, mixed, sets)
        null.append(float(drawn[sizes > 1].mean()))
    return null


def set_similarity(
    vectors: Any,
    sets: Any,
    *,
    strata: Any = None,
    centred: bool = False,
    of: str = "",
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Mean cosine of the pairs of images within a set, averaged over sets.

    Parameters
    ----------
    vectors : array-like, shape (n, d)
        What says how an image looks: features of an encoder, keypoints. Rows of zeros have no
        direction, and take no part.
    sets : array-like, shape (n,)
        The counterfactual set of each image; images without one take no part.
    strata : array-like, shape (n,), optional
        Chance exchanges images of one stratum, such as the subject. Default: all of them.
    centred : bool
        Subtract the mean over all images first, so that images that share nothing have about 0;
        for vectors that all point one way, such as colours.
    of : str
        What the vectors describe: "pose", "background" or "" (the image).
    resampling : Bootstrap, Permutation or None
        Bootstrap over sets. None gives the value alone.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        Metric "pose_similarity", "background_similarity" or "image_similarity": −1 to 1, higher:
        more alike within sets. Chance: the same when images of a stratum change places between
        sets; no p-value, for it is no question of groups. `.by` has every set.

    Raises
    ------
    InputError
        When vectors are no finite numbers, lengths differ, or `of` is another word.

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals, section 3.
    """
    if of not in ("", "pose", "background"):
        raise InputError(f"of={of!r}: expected 'pose', 'background' or ''")
    rows = np.asarray(embedding_table(vectors, "vectors"), dtype=np.float64)
    members, names = encode(sets, what="sets")
    block = np.zeros(len(rows), np.int64) if strata is None else encode(strata, what="strata")[0]
    if not len(rows) == len(members) == len(block):
        raise InputError(f"vectors, sets and strata: expected {len(rows)} of each")
    if centred:
        rows = rows - rows.mean(axis=0)
    lengths = np.linalg.norm(rows, axis=1)
    directed = lengths > 1e-9 * float(lengths.max(initial=0.0))
    kept = directed & (members >= 0) & (block >= 0)
    unit, own = rows[kept] / lengths[kept, None], members[kept]
    means, counts = _set_means(unit, own, len(names))
    used = np.flatnonzero(counts > 1)
    value, boot, chance = float(means[used].mean()) if len(used) else math.nan, None, None
    if isinstance(resampling, Bootstrap) and len(used) > 1:
        many, keys = resampling.replicates, unit_keys([names[one] for one in used])
        times = unit_counts(rng, keys, range(many)).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            boot = np.einsum("rs,s->r", times, means[used]) / times.sum(axis=1)
    if resampling is not None and len(used):
        null = _exchanged_sets(unit, own, block[kept], len(names), resampling.permutations, rng)
        chance = band(null, method=f"images change places between sets; {len(null)} permutations")
    excluded = {
        "vectors without a direction": int((~directed).sum()),
        "images without a set": int((members < 0).sum()),
        "images without a stratum": int((block < 0).sum()),
        "sets of one image": int((counts == 1).sum()),
    }
    metric = f"{of or 'image'}_similarity"
    parts = (Part(metric, names[one], float(means[one]), n=int(counts[one])) for one in used)
    return make_estimate(
        metric=metric,
        value=value,
        n={"images": len(unit)},
        method=bootstrap_method(boot, resampling, "sets", "none: fewer than two sets"),
        params={"centred": centred, "sets": len(used)},
        chance=chance,
        no_chance="" if chance else "no resampling was asked for, or nothing to exchange",
        by=parts_to_table(parts),
        excluded=excluded,
        unit="set",
        reason="" if len(used) else "no set has two images",
        ends=ends_of(boot),
    )


def _set_means(unit: Floats, members: Integers, many: int) -> tuple[Floats, Integers]:
    """Return the mean cosine of the pairs of each set, NaN below two images, and its images."""
    counts = np.bincount(members, minlength=many)
    order = np.argsort(members, kind="stable")
    present = np.flatnonzero(counts)
    sums = np.zeros((many, unit.shape[1]))
    if len(present):
        starts = np.cumsum(counts[present]) - counts[present]
        sums[present] = np.add.reduceat(unit[order], starts, axis=0)
    squares = np.einsum("sd,sd->s", sums, sums)
    pairs = counts * (counts - 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(counts > 1, (squares - counts) / pairs, np.nan), counts


def confusable_subjects(
    texts: Any, names: Sequence[str] | None = None, *, threshold: float = THRESHOLD
) -> Estimate:
    """Share of subjects whose neutral text lies as close to another's as `threshold`.

    Parameters
    ----------
    texts : array-like, shape (m, d)
        Vector of each subject's neutral text.
    names : sequence of str, optional
        Of the subjects; their numbers unless given.
    threshold : float
        Cosine from which two subjects cannot be told apart.

    Returns
    -------
    Estimate
        In [0, 1], higher: more subjects whose rankings are of one text. Descriptive. `.by` has
        "subject_cosine" of each such pair, largest first, and `params["subjects"]` their names.

    Raises
    ------
    InputError
        When texts are no finite numbers or zeros, names do not fit, or the threshold is no cosine.
    """
    if not -1.0 < threshold <= 1.0:
        raise InputError(f"threshold={threshold}: expected a cosine above −1, at most 1")
    unit = _unit(texts, "texts")
    called = _names(range(len(unit)) if names is None else names, len(unit))
    cosines = np.einsum("id,jd->ij", unit, unit)
    # Equal texts are confusable at a threshold of 1, whatever rounding does.
    first, second = np.nonzero(np.triu(cosines >= threshold - 1e-12, 1))
    order = np.argsort(-cosines[first, second], kind="stable")
    parts = [
        Part("subject_cosine", f"{called[a]} | {called[b]}", float(cosines[a, b]), n=2)
        for a, b in zip(first[order].tolist(), second[order].tolist(), strict=True)
    ]
    found = sorted({*first.tolist(), *second.tolist()})
    return make_estimate(
        metric="confusable_subjects",
        value=len(found) / len(unit),
        n={"subjects": len(unit)},
        method="none: every subject is looked at",
        params={"threshold": threshold, "subjects": [called[place] for place in found]},
        no_chance="none: it is a property of the encoder's texts",
        by=parts_to_table(parts),
        unit="subject",
    )


def subject_accuracy(
    images: Any,
    texts: Any,
    subjects: Any,
    *,
    names: Sequence[str],
    margin: float = MARGIN,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Share of images whose own subject's neutral text is the closest of all subjects'.

    Parameters
    ----------
    images : array-like, shape (n, d)
    texts : array-like, shape (m, d)
        Vector of each subject's neutral text.
    subjects : array-like of str, shape (n,)
        What each image shows; those without one, or without a text, are left out and counted.
    names : sequence of str, length m
        Subjects of the texts.
    margin : float
        A subject is told from the others where its accuracy's interval lies above 1 / m + margin.
    units : array-like, shape (n,), optional
        What is resampled together, such as the counterfactual set.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        In [0, 1], lower: subjects are told apart less. Descriptive; chance is 1 / m. `.by` has
        every subject, with what its other images are taken for most in `shows`;
        `params["not_told_apart"]` names those not shown to lie above 1 / m + margin.

    Raises
    ------
    InputError
        When vectors are no finite numbers or zeros, lengths or dimensions differ, or no image has
        a subject with a text.
    """
    unit, text = _unit(images, "images"), _unit(texts, "texts")
    if unit.shape[1] != text.shape[1]:
        raise InputError(f"images of {unit.shape[1]} numbers and texts of {text.shape[1]}")
    called = _names(names, len(text))
    codes, given = encode(subjects, what="subjects")
    if len(codes) != len(unit):
        raise InputError(f"subjects: {len(codes)} images; expected {len(unit)}")
    place = {name: index for index, name in enumerate(called)}
    own = np.array([place.get(name, -1) for name in given] + [-1], dtype=np.int64)[codes]
    kept = own >= 0
    if not kept.any():
        raise InputError("subjects: no image has a subject with a text")
    closest = (unit @ text.T).argmax(axis=1)
    hits, owner = closest == own, Units.of(units, len(unit))
    parts = []
    for index in np.unique(own[kept]).tolist():
        mine = own == index
        others = np.bincount(closest[mine & ~hits], minlength=len(called))
        taken = f"taken for {called[int(others.argmax())]} most" if others.any() else ""
        share = Share.of(hits, mine, owner, resampling, rng)
        parts.append(share.part("subject_accuracy", called[index], shows=taken))
    chance, whole = 1.0 / len(called), Share.of(hits, kept, owner, resampling, rng)
    lows = {one.subject: one.value if math.isnan(one.low) else one.low for one in parts}
    return make_estimate(
        metric="subject_accuracy",
        value=whole.value,
        n={"images": whole.total},
        method=share_method(owner, resampling),
        params={
            "chance": chance,
            "margin": margin,
            "not_told_apart": [name for name, low in lows.items() if not low > chance + margin],
        },
        no_chance=f"none by groups: an encoder that guesses has {chance:.3g}",
        by=parts_to_table(parts),
        excluded={"images without a subject's text": int((~kept).sum())},
        unit=owner.name,
        ends=whole,
    )


def _unit(table: Any, what: str) -> Floats:
    rows = _numbers(table, what)
    lengths = np.linalg.norm(rows, axis=1)
    if not lengths.all():
        raise InputError(f"{what}: row {int(lengths.argmin()) + 1} is zero")
    return np.asarray(rows / lengths[:, None])


def _names(names: Sequence[Any], many: int) -> list[str]:
    found = [str(one) for one in names]
    if len(found) != many or len({*found}) < many:
        raise InputError(f"names: {len(found)}; expected {many} different ones, one for each text")
    return found


_frechet = partial(
    MetricSpec,
    kinds=("counterfactuals", "generation"),
    direction="Higher: the set lies further from the reference.",
    reference="Dowson & Landau 1982; Heusel et al. 2017; Chong & Forsyth 2020 (extrapolation)",
)
_alike = partial(
    MetricSpec,
    kinds=("counterfactuals", "generation"),
    range="[−1, 1]",
    harm="lower",
    interval="percentile bootstrap over sets",
    chance="the value when images of a subject change places between sets",
    reference="Howard et al. 2024, SocialCounterfactuals, section 3",
)
_subject = partial(
    MetricSpec,
    kinds=("counterfactuals", "generation"),
    unit="share",
    reference="Howard et al. 2024, SocialCounterfactuals (subjects' neutral texts)",
    chance="none: a property of the encoder's texts",
)
register(
    _frechet(
        name="frechet_distance",
        title="Fréchet distance",
        symbol="FID",
        range="[0, ∞)",
        definition="|μ1 − μ2|² + tr(Σ1 + Σ2 − 2 (Σ1 Σ2)^½) of the features of two sets of images.",
        chance="none: it depends on the encoder and the number of images",
        interval="resampling spread, no confidence interval",
    ),
    _frechet(
        name="frechet_distance_extrapolated",
        title="Fréchet distance, extrapolated",
        range="(−∞, ∞); below 0 by noise alone",
        definition="Limit of the distance as both sets grow: the intercept of a line in 1 / share.",
        chance="none: it depends on the encoder",
    ),
    MetricSpec(
        name="inception_score",
        title="Inception score",
        symbol="IS",
        kinds=("counterfactuals", "generation"),
        range="[1, number of classes]",
        harm="lower",
        definition=(
            "exp of the mean over images of KL(p(class | image) ‖ p(class)), of a classifier's "
            "probabilities."
        ),
        direction="Lower: images resemble no class, or all the same class.",
        chance="none: 1 for constant predictions, biased upward for few images",
        interval="resampling spread, no confidence interval",
        reference="Salimans et al. 2016; Barratt & Sharma 2018 (what it leaves out)",
    ),
    _alike(
        name="image_similarity",
        neutral=None,
        title="Similarity within sets",
        definition="Mean cosine of the pairs of images of a set, by features; mean over sets.",
        direction="Lower: members of a set share less.",
    ),
    _alike(
        name="pose_similarity",
        neutral=None,
        title="Similarity of poses",
        definition="image_similarity of vectors that describe the pose.",
        direction="Lower: members of a set differ more in pose.",
    ),
    _alike(
        name="background_similarity",
        neutral=None,
        title="Similarity of backgrounds",
        definition=(
            "image_similarity of vectors that describe the background, minus the mean of all "
            "images."
        ),
        direction="Lower: members of a set differ more in background.",
    ),
    _subject(
        name="confusable_subjects",
        title="Confusable subjects",
        definition=(
            "Share of subjects whose neutral text lies as close to another subject's as a "
            "threshold of the cosine."
        ),
        direction="Higher: the encoder confuses more subjects.",
        interval="none: every subject is counted",
    ),
    _subject(
        name="subject_cosine",
        title="Cosine of two subjects' texts",
        range="[threshold, 1]",
        unit="number",
        definition=(
            "Cosine of the neutral texts of two subjects, of pairs at or above the threshold."
        ),
        direction="Higher: the encoder distinguishes the two less.",
        interval="none: every pair is counted",
    ),
    _subject(
        name="subject_accuracy",
        title="Accuracy of subjects",
        harm="lower",
        definition=(
            "Share of images whose own subject's neutral text is the closest of all subjects' "
            "texts."
        ),
        direction="Lower: rankings for one subject are rankings for others.",
        chance="none by groups: 1 over the number of subjects for guesses",
        interval="Wilson, or wider over resampled units",
    ),
)
