"""The larger synthetic results: many classes, a planted demo, a comparison."""

import json
import math
from dataclasses import replace

import numpy as np

from equipoise.core import AuditResult, Family, Verdict
from report.synthetic import (
    CLASSES,
    CONFUSIONS,
    NAN,
    RACES,
    class_rows,
    described,
    faces,
    finding,
    group_values,
    manifest,
    measured,
    table,
)

PIXEL = b"\x89PNG\r\n\x1a\n"


def many_classes(classes=1000, groups=23, *, seed=3):
    """A recognition audit: many classes, many groups, two models."""
    models = ("resnet50", "vit_b_16")
    names = [f"class {i:04d}" for i in range(classes)]
    group_names = [f"group {i:02d}" for i in range(groups)]
    rows, wrong = class_rows(models, names, group_names, seed)
    per_class = table(CLASSES, rows)
    tables = {
        "classes": per_class,
        "confusions": table(CONFUSIONS, wrong),
        "bands": _bands(per_class),
        "group_sizes": table(
            "groups group levels n usable note",
            [("perceived race", g, [g], 50 * classes, True, "") for g in group_names],
        ),
        "gallery": table("section group caption image", [("Maps", "men", "one", PIXEL)]),
        "failures": table(
            "model on groups group stage n of",
            [
                ("vit_b_16", "images", "", "", "decode", 23, 50 * classes * groups),
                *(
                    ("vit_b_16", "images", "perceived race", g, "decode", 1, 50 * classes)
                    for g in group_names
                ),
            ],
        ),
    }
    found = [*_composites(models, group_names, seed), *_leaves(per_class, group_names, seed)]
    return AuditResult(tuple(found), manifest(notes=()), tables)


def _bands(per_class):
    keys = ["model", "groups", "version", "band"]
    counted = per_class.group_by(keys, use_threads=False).aggregate([("class", "count")])
    return counted.rename_columns([*keys, "classes"])


def _composites(models, groups, seed):
    rng = np.random.default_rng(seed)
    found = []
    for model in models:
        cells = {(g,): (int(rng.integers(600, 900)), 1000) for g in groups}
        common = {"model": model, "groups": "perceived race", "by_group": group_values(cells)}
        found.append(described("accuracy", 0.78, 0.01, **common))
        found.append(described("worst_group_accuracy", 0.61, 0.01, **common))
        found.append(measured("accuracy_gap", 0.17, 0.01, 0.03, 0.05, **common))
        found.append(measured("equalized_odds", 0.8, 0.05, 0.3, 0.1, **common))
        found.append(described("effect_size_mean", 0.24, 0.01, **common))
        found.append(described("skewsize", 0.77 if model == "vit_b_16" else 0.52, 0.1, **common))
    return found


def _leaves(per_class, groups, seed):
    rng = np.random.default_rng(seed)
    found = []
    for row in per_class.to_pylist():
        cells = {(g,): (int(rng.integers(20, 50)), 50) for g in groups}
        value = row["effect_size"]
        found.append(
            measured(
                "cramers_v", value, 0.04, 0.08, 0.1, model=row["model"], subject=row["class"],
                groups="perceived race", family=Family.LEAF, by_group=group_values(cells), n=1150,
                reason=row["reason"],
            )
        )  # fmt: skip
    return found


COMPARED = (
    ("accuracy", "", 0.6848, 0.8829, "deepface", 0.01, Verdict.DISPARITY),
    ("worst_group_accuracy", "", 0.1296, 0.6083, "deepface", 0.03, Verdict.DISPARITY),
    ("accuracy_gap", "", 0.5552, 0.2746, "deepface", 0.03, Verdict.DISPARITY),
    ("demographic_parity", "", 0.451, 0.448, "deepface", 0.03, Verdict.INCONCLUSIVE),
    ("equalized_odds", "Female", 0.3816, 0.2835, "deepface", 0.04, Verdict.INCONCLUSIVE),
    ("effect_size_mean", "", 0.2022, 0.2235, "facellm", 0.01, Verdict.BELOW_THRESHOLD),
    ("cramers_v", "Male", 0.1, 0.35, "facellm", 0.03, Verdict.DISPARITY),
    ("skewsize", "", NAN, NAN, "", NAN, Verdict.NOT_ESTIMABLE),
)


def difference(metric, subject, a, b, worse, spread, said):
    """A finding about facellm − deepface; `a` is deepface's value."""
    known = {"value_a": None if math.isnan(a) else a, "value_b": None if math.isnan(b) else b}
    models = {"model_a": "deepface", "model_b": "facellm", "worse": worse}
    return finding(
        audit="comparison",
        model="facellm − deepface",
        metric=metric,
        subject=subject,
        groups="" if metric == "accuracy" else "race × gender",
        value=b - a,
        ci_low=b - a - 2 * spread,
        ci_high=b - a + 2 * spread,
        chance=0.0,
        excess=b - a,
        q_value=0.002 if said == Verdict.DISPARITY else 0.8,
        parameters=json.dumps(known | models),
        verdict=said,
        family=Family.LEAF if subject else Family.COMPOSITE,
        reason="facellm: 2 classes can be estimated" if math.isnan(a) else "",
    )


def comparison():
    """Two models compared on the same images."""
    base = faces()
    found = tuple(difference(*one) for one in COMPARED)
    differences = [
        (f.metric, f.subject, f.groups, "default", "deepface", "facellm", a, b, f.value, f.ci_low,
         f.ci_high, f.p_value, f.q_value, f.n, str(f.verdict), f.reason)
        for f, (_, _, a, b, *_) in zip(found, COMPARED, strict=True)
    ]  # fmt: skip
    ranks = [
        ("accuracy_gap", "race × gender", model, value, rank, rank, rank, share)
        for model, value, rank, share in (("facellm", 0.27, 1, 1.0), ("deepface", 0.55, 2, 0.0))
    ] + [
        ("demographic_parity", "race × gender", model, value, rank, 1, 2, share)
        for model, value, rank, share in (("facellm", 0.448, 1, 0.6), ("deepface", 0.451, 2, 0.4))
    ]
    sentence = "accuracy prefers facellm; label skewness prefers deepface."
    tables = {
        "group_sizes": base.tables["group_sizes"],
        "differences": table(
            "metric subject groups version model_a model_b value_a value_b difference low high"
            " p_value q_value n verdict reason", differences),
        "ranking": table("metric groups model value rank rank_low rank_high share_best", ranks),
        "disagreements": table(
            "groups metric_a metric_b model_a model_b sentence",
            [("race × gender", "accuracy", "label_skewness", "deepface", "facellm", sentence)]),
    }  # fmt: skip
    return AuditResult(found, base.manifest, tables)


def augmentation():
    """A network after four trainings."""
    base = comparison()
    arms = ("biased", "partial mixing", "uniform noise", "balanced")
    rows = [
        ("cnn", arm, 5, 400, 0.6 + place / 10, 0.5, 0.95, *distance, 0.25)
        for place, (arm, distance) in enumerate(
            zip(arms, [(0.3 - p / 10, 0.1, 0.4, 30.0, 20.0, 41.5, p / 50, 0.5) for p in range(3)]
                + [(None,) * 8], strict=True)
        )
    ]  # fmt: skip
    columns = (
        "network arm runs images accuracy low high difference difference_low difference_high"
        " percent_difference percent_low percent_high runs_low runs_high chance"
    )
    faces = [("cnn", "biased", "ring", "whole", "short", 0.2, 0.1, 0.3, -0.1, 0.1, 0.002)]
    missing = [("test", "short", 3, 100)]
    counts = [
        (images, tool, hair, 50)
        for images in ("balanced", "test") for tool in ("bar", "ring") for hair in ("long", "short")
    ]  # fmt: skip
    tables = {
        "augmentation": table(columns, rows),
        "augmentation_associations": table(
            "network arm class faces towards value low high chance_low chance_high p_value", faces),
        "augmentation_images": table("images class group count", counts),
        "faces_missing": table("images group without of", missing),
    }  # fmt: skip
    verdicts = (Verdict.DISPARITY, Verdict.INCONCLUSIVE, Verdict.BELOW_THRESHOLD)
    gains = ((0.1, 0.05, 0.15), (-0.02, -0.06, 0.02), (0.001, -0.004, 0.006))
    found = tuple(
        replace(
            next(f for f in base.findings if f.metric == "accuracy" and not f.subject),
            unit="image and training run", groups="", verdict=verdict, q_value=0.002,
            model=f"cnn ({arm}) − cnn (biased)", value=value, ci_low=low, ci_high=high,
            parameters=json.dumps(
                {"model_a": "cnn (biased)", "model_b": f"cnn ({arm})", "value_a": 0.6,
                 "value_b": 0.6 + value, "worse": "cnn (biased)", "network": "cnn", "arm": arm}
            ),
        )
        for arm, verdict, (value, low, high) in zip(arms[1:], verdicts, gains, strict=True)
    )  # fmt: skip
    return AuditResult(found, replace(base.manifest, config={}, resolved={}), tables)


def hostile():
    """Labels that try to leave their place in the page."""
    attack = "</script><script>alert(1)</script>"
    bidi = "left\u202egnp.exe\u2066 \x1b[31m<!--<img src=x onerror=alert(2)>"
    cells = {(attack, bidi): (28, 216), (attack, "Male"): (212, 217), ("{{7*7}}", bidi): (90, 100)}
    base = faces()
    found = [
        replace(f, model=attack, subject=bidi, groups=f"{bidi} × b", by_group=group_values(cells))
        for f in base.findings[:8]
    ]
    rows, wrong = class_rows((attack,), (bidi, attack, "c"), ("g", attack, *RACES[:2]), 1)
    tables = {"classes": table(CLASSES, rows), "confusions": table(CONFUSIONS, wrong)}
    return AuditResult(tuple(found), manifest(notes=(attack, bidi)), tables)
