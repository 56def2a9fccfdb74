"""Results of the shape that audits make, built from counts and a seed: for the report's tests."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from equipoise.core import AuditResult, Excluded, Family, Finding, GroupValue, Manifest, Verdict

NAN = math.nan
Cells = Mapping[tuple[str, ...], tuple[int, int]]

RACES = (
    "Black", "East Asian", "Indian", "Latino_Hispanic", "Middle Eastern", "Southeast Asian",
    "White",
)  # fmt: skip
# Right answers and images per race, for women and men, as two real models have them.
FACES = {
    "deepface": (
        (28, 216), (108, 236), (45, 196), (117, 232), (43, 87), (52, 176), (137, 268),
        (212, 217), (188, 204), (227, 231), (219, 226), (225, 231), (160, 168), (292, 310),
    ),
    "facellm": (
        (213, 216), (236, 236), (196, 196), (231, 232), (87, 87), (173, 176), (265, 268),
        (132, 217), (148, 204), (181, 231), (198, 226), (206, 231), (122, 168), (259, 310),
    ),
}  # fmt: skip


def wilson(k, n):
    z = 1.959963984540054
    p, d = k / n, 1 + z * z / n
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / d
    centre = (p + z * z / (2 * n)) / d
    return centre - half, centre + half


def group_values(cells, minimum=30):
    return tuple(
        GroupValue(", ".join(levels), levels, n, k / n, *wilson(k, n), note="")
        if n >= minimum
        else GroupValue(
            ", ".join(levels), levels, n, NAN, NAN, NAN, f"{n} rows, fewer than {minimum}"
        )
        for levels, (k, n) in cells.items()
    )


def finding(**changes):
    """One plausible finding; anything can be changed by name."""
    base = Finding(
        audit="predictions", model="deepface", metric="accuracy_gap", subject="",
        groups="race × gender", version="default", family=Family.COMPOSITE,
        value=0.5552, ci_low=0.508, ci_high=0.596, level=0.95,
        chance=0.061, chance_low=0.031, chance_high=0.104, excess=0.4942,
        p_value=0.0001, q_value=0.0003, threshold=0.05, n=2998,
        by_group=(), excluded=(), unit="row", method="percentile bootstrap, 1000 replicates",
        null="groups permuted over all rows, 9999 draws", parameters=json.dumps({"seed": 7}),
        direction="", verdict=Verdict.DISPARITY, reason="", citation="metrics reference, section 1",
    )  # fmt: skip
    return replace(base, **changes)


def verdict(excess, high, q, threshold):
    if math.isnan(excess):
        return Verdict.NOT_ESTIMABLE
    if q <= 0.05 and excess >= threshold:
        return Verdict.DISPARITY
    return Verdict.BELOW_THRESHOLD if high < threshold else Verdict.INCONCLUSIVE


def measured(metric, value, spread, chance, threshold, **changes):
    excess = value - chance
    q = min(1.0, math.exp(-6 * excess / max(spread, 1e-9)))
    return finding(
        metric=metric, value=value, ci_low=max(value - 2 * spread, -1), ci_high=value + 2 * spread,
        chance=chance, chance_low=chance / 2, chance_high=chance * 1.7, excess=excess,
        p_value=q / 2, q_value=q, threshold=threshold,
        verdict=verdict(excess, value + 2 * spread, q, threshold),
        **changes,
    )  # fmt: skip


def described(metric, value, spread, **changes):
    return finding(
        metric=metric, value=value, ci_low=value - 2 * spread, ci_high=value + 2 * spread,
        chance=NAN, chance_low=NAN, chance_high=NAN, excess=NAN, p_value=NAN, q_value=NAN,
        threshold=NAN, family=Family.DESCRIPTIVE, verdict=Verdict.NONE,
        reason="no null: a rate by itself is neither fair nor unfair", null="", **changes,
    )  # fmt: skip


def _cells(model, attributes):
    full = {
        (race, gender): FACES[model][i + 7 * j]
        for j, gender in enumerate(("Female", "Male"))
        for i, race in enumerate(RACES)
    }
    if attributes == ("race", "gender"):
        return dict(sorted(full.items()))
    merged = {}
    for (race, _), (k, n) in full.items():
        before = merged.get((race,), (0, 0))
        merged[(race,)] = before[0] + k, before[1] + n
    return merged


def _accuracy_findings(model, attributes):
    cells = _cells(model, attributes)
    by_group = group_values(cells)
    k, n = (sum(pair[i] for pair in cells.values()) for i in (0, 1))
    worst = min(part.value for part in by_group)
    common = dict(  # noqa: C408 - keyword arguments
        model=model, groups=" × ".join(attributes), by_group=by_group, n=n,
        excluded=(Excluded("prediction missing", 2), Excluded("group smaller than 30", 0)),
    )  # fmt: skip
    yield described("accuracy", k / n, 0.008, **common)
    yield described("worst_group_accuracy", worst, 0.02, **common)
    yield measured("accuracy_gap", k / n - worst, 0.02, 0.06, 0.05, **common)
    for name, value in (("demographic_parity", 0.45), ("equalized_odds", k / n - worst)):
        yield measured(name, value, 0.04, 0.09, 0.1, **common)
    reason = "only 2 classes; the skewness of the effect sizes needs at least 3"
    yield replace(
        described("skewsize", NAN, NAN, **common), verdict=Verdict.NOT_ESTIMABLE, reason=reason
    )


def _class_findings(model, attributes):
    for gender, strength in (("Female", 0.38), ("Male", 0.04)):
        cells = {
            levels: pair
            for levels, pair in _cells(model, ("race", "gender")).items()
            if levels[1] == gender
        }
        by_group = group_values({(levels[0],): pair for levels, pair in cells.items()})
        common = dict(  # noqa: C408 - keyword arguments
            model=model, groups=attributes[0], subject=gender, family=Family.LEAF,
            by_group=by_group, n=sum(n for _, n in cells.values()),
            null="race permuted within the true class, 9999 draws",
        )  # fmt: skip
        size = strength if model == "deepface" else 0.42 - strength
        wrong = {(levels[0],): (n - k, n) for levels, (k, n) in cells.items()}
        yield measured(
            "cramers_v", size, 0.03, 0.03, 0.1, **common | {"by_group": group_values(wrong)}
        )
        yield measured("true_positive_rate", size + 0.1, 0.04, 0.05, 0.1, **common)


def manifest(**changes):
    config = {
        "audit": "predictions",
        "data": {
            "table": "labels.csv", "id": "image_id", "target": "gender",
            "groups": ["race", ["race", "gender"]],
        },
        "models": {m: {"table": f"{m}.csv", "prediction": "gender"} for m in FACES},
        "resampling": {"method": "bootstrap", "replicates": 1000, "seed": 7},
    }  # fmt: skip
    base = Manifest(
        config=config,
        resolved=config | {"thresholds": {"accuracy_gap": 0.05}, "alpha": 0.05},
        versions={"equipoise": "0.1.0", "python": "3.11.2", "numpy": "2.4.6", "pyarrow": "26.0.1"},
        commit="0123456789abcdef0123456789abcdef01234567",
        dirty=False,
        inputs={
            "labels.csv": {"sha256": "a" * 64, "bytes": 81234, "rows": 2998},
            "deepface.csv": {"sha256": "b" * 64, "bytes": 181234, "rows": 3000},
        },
        counts={"labels": 2998, "models": {"deepface": {"answered": 2996, "without_label": 2}}},
        seed=7,
        started="2026-11-20T10:00:00+00:00",
        seconds=3.2,
        machine={"system": "Linux", "cpus": 8, "threads": 2},
        notes=(
            "gender determines the target gender: groups with gender are tested over all rows only",
        ),
    )
    return replace(base, **changes)


def table(names, rows):
    columns = names.split()
    data = [dict(zip(columns, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(data) if data else pa.table({name: [] for name in columns})


CLASSES = (
    "model groups version class n accuracy worst_group worst_group_accuracy gap effect_size"
    " effect_low effect_high effect_chance demographic_parity equalized_odds band columns_dropped"
    " rows_dropped reason"
)
CONFUSIONS = "model groups version class group prediction count n"


def band(v):
    if math.isnan(v):
        return ""
    names = ("negligible", "small", "medium", "large")
    return names[int(np.searchsorted((0.1, 0.3, 0.5), v, side="right"))]


def class_rows(models, classes, groups, seed):
    """Rows of `classes` and `confusions` with a few classes that are accurate and biased."""
    rng = np.random.default_rng(seed)
    rows = []
    wrong = []
    for model in models:
        for i, name in enumerate(classes):
            accuracy = float(rng.beta(9, 2))
            v = float(np.clip(rng.beta(2, 7) + 0.2 * (1 - accuracy), 0, 1))
            v = NAN if i % 97 == 96 else v
            odds = float(np.clip(v * rng.uniform(0.5, 1.1), 0, 1))
            rows.append(
                (
                    model, "perceived race", "default", name, 50 * len(groups), accuracy,
                    groups[i % len(groups)], max(accuracy - odds, 0), min(odds, accuracy), v,
                    max(v - 0.1, 0), min(v + 0.1, 1), 0.08, odds / 4, odds, band(v), i % 5, i % 7,
                    "every row predicted the same" if math.isnan(v) else "",
                )
            )  # fmt: skip
            wrong += [
                (model, "perceived race", "default", name, group,
                 classes[(i + 1 + j) % len(classes)], int(rng.integers(1, 14)), 50)
                for j, group in enumerate(groups)
            ]  # fmt: skip
    return rows, wrong


def face_tables():
    sizes, states = [], []
    for attributes in (("race",), ("race", "gender")):
        for levels, (_, n) in _cells("deepface", attributes).items():
            sizes.append((" × ".join(attributes), ", ".join(levels), list(levels), n, True, ""))
    sizes.append(("race × gender", "Roma, Female", ["Roma", "Female"], 0, False, "no rows"))
    for model in FACES:
        states.append((model, "answered", "", "", 2996))
        states.append((model, "missing", "", "", 2))
        states.append((model, "without label", "", "", 2))
    return {
        "group_sizes": table("groups group levels n usable note", sizes),
        "states": table("model state group groups count", states),
    }


def faces():
    """Two models, a binary target, race and race × gender."""
    found = [
        item
        for model in FACES
        for attributes in (("race",), ("race", "gender"))
        for item in (*_accuracy_findings(model, attributes), *_class_findings(model, attributes))
        if item.groups == " × ".join(attributes)
    ]
    return AuditResult(tuple(found), manifest(), face_tables())
