"""Design choices: what each version of an assessment does to the disparities of a baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa

from equipoise.core import Floats, InputError, Strings, nans, record, table_of
from equipoise.core.columns import FLAG, INTEGER, NUMBER, TEXT
from equipoise.metrics.building import ends_of
from equipoise.metrics.concepts.disparity import ConceptResults
from equipoise.stats.chance import benjamini_hochberg

Versions = Mapping[str, ConceptResults]
Key = tuple[str, str, str]


@record
class Contrast:
    """One concept's difference between two groups in one version ("" for the mean over concepts).

    Attributes
    ----------
    value, low, high : float
        Difference of the first and the second group, with its percentile interval; NaN where the
        version can't estimate it.
    replicates : ndarray, shape (replicates,)
    p_value, q_value : float
        Of the version's own test; q is corrected within the version.
    significant : bool
    """

    value: float
    low: float
    high: float
    replicates: Floats
    p_value: float = math.nan
    q_value: float = math.nan
    significant: bool = False

    @property
    def sign(self) -> float:
        """1 where the first group has the larger value, -1 where the second has."""
        return math.copysign(1.0, self.value)


Contrasts = Mapping[Key, Contrast]
_UNKNOWN = Contrast(math.nan, math.nan, math.nan, nans(1))


def contrasts_of(versions: Versions, baseline: str, alpha: float) -> dict[str, Contrasts]:
    """Judge every version; raise an InputError when they cannot be compared."""
    if baseline not in versions:
        raise InputError(f"baseline={baseline!r}: expected one of the versions {list(versions)}")
    counts = {
        name: 0 if results.boot is None else len(results.boot) for name, results in versions.items()
    }
    if 0 in counts.values() or len(set(counts.values())) > 1:
        raise InputError(
            f"versions: replicates {counts}; expected equally many bootstrap replicates in all"
        )
    return {name: _of_version(results, alpha) for name, results in versions.items()}


def _of_version(results: ConceptResults, alpha: float) -> Contrasts:
    """Return the contrast of each pair of groups; means over concepts are a family of their own."""
    contrasts: dict[Key, Contrast] = {}
    for family in ([None], range(len(results.names))):
        rows = []
        for concept in family:
            for pair, value, replicates, chance_test in results.compared(concept):
                ends = ends_of(replicates)(1.0 - alpha)
                p = math.nan if chance_test.p_value is None else chance_test.p_value
                first, second = (results.groups.names[group] for group in pair)
                key = "" if concept is None else results.names[concept], first, second
                rows.append((key, Contrast(value, *ends, np.asarray(replicates), p)))
        q = benjamini_hochberg(np.array([contrast.p_value for _, contrast in rows]))
        for (key, contrast), adjusted in zip(rows, q.tolist(), strict=True):
            significant = (
                contrast.low > 0 or contrast.high < 0 if results.hall else adjusted <= alpha
            )
            contrasts[key] = replace(contrast, q_value=adjusted, significant=bool(significant))
    return contrasts


def reason_of(results: ConceptResults, key: Key) -> str:
    """Say why a version cannot estimate a difference; "" where it can.

    Parameters
    ----------
    results : ConceptResults
        Of the version.
    key : tuple of str
        Concept ("" for the mean over concepts) and two groups, by name.
    """
    concept, *pair = key
    names = results.groups.names
    if missing := [name for name in pair if name not in names]:
        return f"{missing[0]}: no rows"
    if not concept:
        shared = shared_concepts(results, key)
        return "" if shared else "no concept in which both groups take part"
    if concept not in results.names:
        return "the concept is not measured"
    reasons = zip(names, results.reasons[results.names.index(concept)], strict=True)
    return "; ".join(f"{name}: {reason}" for name, reason in reasons if name in pair and reason)


def shared_concepts(results: ConceptResults, key: Key) -> Strings:
    """Return the concepts that the mean of a pair of groups is over."""
    names = results.groups.names
    if not {*key[1:]} <= {*names}:
        return ()
    shared = results.shared(None, *(names.index(name) for name in key[1:]))
    return tuple(results.names[place] for place in np.flatnonzero(shared))


# By how much |difference| must change to be magnified or shrunk ([Hall]).
_FACTOR = 0.25


def design_choices(versions: Versions, baseline: str, *, alpha: float = 0.05) -> pa.Table:
    """Return the effect of each version of design choices on each disparity.

    Parameters
    ----------
    versions : mapping of name to ConceptResults
        From `concept_metrics` with Bootstrap, one seed and equally many replicates; rows in the
        same order (or with the same units) make changes paired. Versions may differ in metric,
        prevalence, groups, concepts and rows; concepts and groups are matched by name.
    baseline : str
        One of the versions.
    alpha : float
        A difference is significant where its q-value (Benjamini-Hochberg over all concepts and
        pairs of a version; the means over concepts apart) is at most alpha. Under [Hall]'s
        protocol: where its 1 - alpha interval excludes 0. `rule` says which.

    Returns
    -------
    pyarrow.Table
        baseline, version, concept ("" = mean over concepts), group_a, group_b, baseline_value with
        baseline_low and baseline_high, value with low and high, p_value, q_value (within the
        version), baseline_significant, significant, change (of the difference in the baseline's
        direction) with change_low and change_high, reason (why the baseline or this version has no
        number; of a mean, which concepts it is over where those are not the baseline's), and
        effect:

        - "surfaces": significant only in this version, and the paired change excludes 0;
        - "explains": significant only in the baseline, and it has shrunk or turned: the paired
          change excludes 0;
        - "gained power", "lost power": significant in one of them, and the change may be chance;
        - "switches": significant in both, in opposite directions;
        - "magnifies", "shrinks": |difference| changes by more than 25 %, and the paired change
          excludes 0;
        - "stays": significant in both without that; "absent": in neither;
        - "not estimable": a group or concept does not take part in one of them, so that nothing
          is known of what the version does.

    Raises
    ------
    InputError
        When `baseline` is no version, there are no replicates, or their numbers differ.

    References
    ----------
    Hall et al. 2023; Steegen et al. 2016 (multiverse analysis).

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.random((400, 2)) < 0.4
    >>> groups = np.repeat(["women", "men"], 200)
    >>> scores = (
    ...     labels
    ...     + rng.normal(size=(400, 2)) * np.where(groups == "women", 1.5, 0.5)[:, None]
    ... )
    >>> versions = {
    ...     name: m.concept_metrics(
    ...         scores,
    ...         labels,
    ...         groups,
    ...         ["auroc"],
    ...         m.Choices(metric="auroc", min_positives=n),
    ...     )["auroc"]
    ...     for name, n in (("few", 20), ("many", 40))
    ... }
    >>> m.design_choices(versions, "many").num_rows
    3
    """
    contrasts = contrasts_of(versions, baseline, alpha)
    rows = []
    for name, version_contrasts in contrasts.items():
        if name == baseline:
            continue
        for key, old in contrasts[baseline].items():
            new = version_contrasts.get(key, _UNKNOWN)
            change, low, high = math.nan, math.nan, math.nan
            if not math.isnan(old.value + new.value):
                change = old.sign * (new.value - old.value) + 0.0  # no -0.0
                ends = ends_of(old.sign * (new.replicates - old.replicates))(1.0 - alpha)
                low, high = ends[0] + 0.0, ends[1] + 0.0
            rows.append(
                {
                    "baseline": baseline,
                    "version": name,
                    **_named(key),
                    "baseline_value": old.value,
                    "baseline_low": old.low,
                    "baseline_high": old.high,
                    "value": new.value,
                    "low": new.low,
                    "high": new.high,
                    "p_value": new.p_value,
                    "q_value": new.q_value,
                    "baseline_significant": old.significant,
                    "significant": new.significant,
                    "change": change,
                    "change_low": low,
                    "change_high": high,
                    "effect": _effect(old, new, low, high),
                    "reason": _explain_difference(versions, name, baseline, key),
                }
            )
    return table_of(
        rows,
        {
            "baseline": TEXT,
            "version": TEXT,
            "concept": TEXT,
            "group_a": TEXT,
            "group_b": TEXT,
            "baseline_value": NUMBER,
            "baseline_low": NUMBER,
            "baseline_high": NUMBER,
            "value": NUMBER,
            "low": NUMBER,
            "high": NUMBER,
            "p_value": NUMBER,
            "q_value": NUMBER,
            "baseline_significant": FLAG,
            "significant": FLAG,
            "change": NUMBER,
            "change_low": NUMBER,
            "change_high": NUMBER,
            "effect": TEXT,
            "reason": TEXT,
        },
    )


def robust_conclusions(versions: Versions, baseline: str, *, alpha: float = 0.05) -> pa.Table:
    """Say which conclusions of the baseline hold in all versions.

    Parameters and errors as in `design_choices`.

    Returns
    -------
    pyarrow.Table
        concept, group_a, group_b, conclusion of the baseline (the name of the group with the
        significantly larger value, "" for no significant difference), versions where it can be
        estimated, the baseline among them, not_estimable (versions where it cannot), agreeing
        (how many of those where it can conclude the same) and their share, robust (all versions
        can be estimated, and agree). A disparity that the baseline cannot estimate has no row:
        there is no conclusion to hold.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.random((400, 2)) < 0.4
    >>> groups = np.repeat(["women", "men"], 200)
    >>> scores = (
    ...     labels
    ...     + rng.normal(size=(400, 2)) * np.where(groups == "women", 1.5, 0.5)[:, None]
    ... )
    >>> versions = {
    ...     name: m.concept_metrics(
    ...         scores,
    ...         labels,
    ...         groups,
    ...         ["auroc"],
    ...         m.Choices(metric="auroc", min_positives=n),
    ...     )["auroc"]
    ...     for name, n in (("few", 20), ("many", 40))
    ... }
    >>> m.robust_conclusions(versions, "many").num_rows
    3
    """
    contrasts = contrasts_of(versions, baseline, alpha)
    rows = []
    for key, old in contrasts[baseline].items():
        if math.isnan(old.value):
            continue
        version_contrasts = [by_key.get(key, _UNKNOWN) for by_key in contrasts.values()]
        estimable = [contrast for contrast in version_contrasts if not math.isnan(contrast.value)]
        conclusions = [_conclusion(contrast, key) for contrast in estimable]
        agreeing = conclusions.count(_conclusion(old, key))
        rows.append(
            {
                **_named(key),
                "conclusion": _conclusion(old, key),
                "versions": len(estimable),
                "not_estimable": len(version_contrasts) - len(estimable),
                "agreeing": agreeing,
                "share": agreeing / len(estimable),
                "robust": agreeing == len(version_contrasts),
            }
        )
    return table_of(
        rows,
        {
            "concept": TEXT,
            "group_a": TEXT,
            "group_b": TEXT,
            "conclusion": TEXT,
            "versions": INTEGER,
            "not_estimable": INTEGER,
            "agreeing": INTEGER,
            "share": NUMBER,
            "robust": FLAG,
        },
    )


def model_order(models: Mapping[str, Versions], baseline: str, *, alpha: float = 0.05) -> pa.Table:
    """Say which of two models has the larger disparity in each version, and where that switches.

    Parameters
    ----------
    models : mapping of name to versions
        Each as in `design_choices`, with the same versions.
    baseline, alpha
        As in `design_choices`.

    Returns
    -------
    pyarrow.Table
        version, concept, group_a, group_b, model_a, model_b, difference (|a's difference| -
        |b's|) with low and high (paired), larger (the model whose disparity is significantly
        larger, "" for none), baseline_larger, and switches: both are known and differ.

    Raises
    ------
    InputError
        As `design_choices`, or when models have other versions.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.random((400, 2)) < 0.4
    >>> groups = np.repeat(["women", "men"], 200)
    >>> scores = (
    ...     labels
    ...     + rng.normal(size=(400, 2)) * np.where(groups == "women", 1.5, 0.5)[:, None]
    ... )
    >>> baseline = {"only": m.concept_metrics(scores, labels, groups, ["auroc"])["auroc"]}
    >>> other = {
    ...     "only": m.concept_metrics(scores[:, ::-1], labels, groups, ["auroc"])["auroc"]
    ... }
    >>> m.model_order({"first": baseline, "second": other}, "only").num_rows
    3
    """
    names = {name: sorted(versions) for name, versions in models.items()}
    if len({tuple(version_names) for version_names in names.values()}) != 1:
        raise InputError(f"models: versions {names}; expected the same versions for every model")
    contrasts = {name: contrasts_of(versions, baseline, alpha) for name, versions in models.items()}
    rows = []
    for a, b in combinations(models, 2):
        for key in contrasts[a][baseline]:
            ordered, larger = {}, {}
            for version, by_key in contrasts[a].items():
                other = contrasts[b][version].get(key, _UNKNOWN)
                ordered[version] = _order(by_key.get(key, _UNKNOWN), other, alpha)
                larger[version] = _larger(a, b, *ordered[version][1:])
            first = larger[baseline]
            for version, (difference, low, high) in ordered.items():
                rows.append(
                    {
                        "version": version,
                        **_named(key),
                        "model_a": a,
                        "model_b": b,
                        "difference": difference,
                        "low": low,
                        "high": high,
                        "larger": larger[version],
                        "baseline_larger": first,
                        "switches": {first, larger[version]} == {a, b},
                    }
                )
    return table_of(
        rows,
        {
            "version": TEXT,
            "concept": TEXT,
            "group_a": TEXT,
            "group_b": TEXT,
            "model_a": TEXT,
            "model_b": TEXT,
            "difference": NUMBER,
            "low": NUMBER,
            "high": NUMBER,
            "larger": TEXT,
            "baseline_larger": TEXT,
            "switches": FLAG,
        },
    )


def _explain_difference(versions: Versions, name: str, baseline: str, key: Key) -> str:
    """Return why one of two has no number, or how the concepts of their means differ, or ""."""
    reasons = [reason_of(versions[version], key) for version in (name, baseline)]
    baseline_concepts = shared_concepts(versions[baseline], key)
    version_concepts = shared_concepts(versions[name], key)
    if not key[0] and not any(reasons) and {*version_concepts} != {*baseline_concepts}:
        reasons = [
            f"over {len(version_concepts)} concepts, not the "
            f"{len(baseline_concepts)} of the baseline"
        ]
    return reasons[0] or (reasons[-1] and f"baseline: {reasons[-1]}")


def _effect(old: Contrast, new: Contrast, change_low: float, change_high: float) -> str:
    """Name what becomes of a difference whose paired change has an interval."""
    if math.isnan(old.value + new.value):
        return "not estimable"
    changes = change_low > 0 or change_high < 0
    if not old.significant and not new.significant:
        return "absent"
    if not old.significant:
        return "surfaces" if changes else "gained power"
    if not new.significant:
        return "explains" if change_high < 0 else "lost power"
    if old.sign != new.sign:
        return "switches"
    ratio = new.value / old.value
    if changes and abs(ratio - 1.0) > _FACTOR:
        return "magnifies" if ratio > 1.0 else "shrinks"
    return "stays"


def _larger(a: str, b: str, low: float, high: float) -> str:
    """Return the model with the larger disparity, "" for no significant difference."""
    if low > 0:
        return a
    return b if high < 0 else ""


def _conclusion(contrast: Contrast, key: Key) -> str:
    if not contrast.significant:
        return ""
    return key[1] if contrast.sign > 0 else key[2]


def _order(a: Contrast, b: Contrast, alpha: float) -> tuple[float, float, float]:
    """Return how much larger the first disparity is, with its interval."""
    difference = abs(a.value) - abs(b.value)
    if math.isnan(difference):
        return difference, math.nan, math.nan
    # The observed directions stay: |replicate| would never be below 0.
    return difference, *ends_of(a.sign * a.replicates - b.sign * b.replicates)(1.0 - alpha)


def _named(key: Key) -> dict[str, str]:
    return dict(zip(("concept", "group_a", "group_b"), key, strict=True))
