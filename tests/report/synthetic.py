"""Results of audits of made-up predictions, and findings of any kind: for the report's tests."""

import math
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pyarrow as pa

from equipoise import audits
from equipoise.core import (
    Aggregate,
    AuditResult,
    Family,
    Finding,
    GroupValue,
    Manifest,
    NullHypothesis,
    Verdict,
)
from equipoise.metrics import SPECS, association_score
from equipoise.metrics.spec import own_aggregate
from equipoise.mitigate.augmentation.changes import ARMS
from equipoise.mitigate.augmentation.experiment import Experiment, findings_of, tables_of

NAN = math.nan
PIXEL = b"\x89PNG\r\n\x1a\n"
NAMES = ("bar", "ring"), ("long", "short")
RACES = ("Black", "East Asian", "Indian", "White")


def group_values(cells):
    """Values of groups from right answers and images."""
    return tuple(
        GroupValue(", ".join(levels), levels, n, k / n, k / n - 0.05, k / n + 0.05, note="")
        for levels, (k, n) in cells.items()
    )


def finding(**changes):
    """One plausible finding; anything can be changed by name."""
    base = Finding(
        audit="predictions", model="deepface", metric="accuracy", subject="",
        aggregate=Aggregate.DIFFERENCE, compared_to="overall",
        groups="race × gender", version="default", family=Family.COMPOSITE,
        value=0.5552, ci_low=0.508, ci_high=0.596, level=0.95,
        chance=0.061, chance_low=0.031, chance_high=0.104, excess=0.4942,
        p_value=0.0001, q_value=0.0003, threshold=0.05, n=2998,
        by_group=(), excluded=(), unit="row", method="percentile bootstrap, 1000 replicates",
        null=NullHypothesis.ROWS, null_drawn="9999 draws", parameters={"seed": 7},
        verdict=Verdict.DISPARITY, reason="", citation="metrics reference, section 1",
    )  # fmt: skip
    if "metric" in changes:
        # Of a rate, what a finding is about is the difference between groups.
        spec = SPECS.get(changes["metric"])
        rate = spec is not None and spec.rate
        aggregate = Aggregate.DIFFERENCE if rate else own_aggregate(changes["metric"])
        changes = {"aggregate": aggregate, "compared_to": "", **changes}
    return replace(base, **changes)


def manifest(**changes):
    base = Manifest({}, {}, {"equipoise": "0.1.0"}, "", False, {}, {}, 7, "", 3.2, {})
    return replace(base, **changes)


def table(names, rows):
    columns = names.split()
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows])


def audited(columns, right, target, groups, **config):
    """Audit models that are right with the given chances; wrong ones name the next class."""
    truth = np.array(columns[target])
    classes, codes = np.unique(truth, return_inverse=True)
    rng = np.random.default_rng(3)
    for model, chances in right.items():
        wrong = rng.random(len(truth)) > chances
        columns[model] = classes[(codes + wrong) % len(classes)].tolist()
    rows = pa.table({"image_id": [*map(str, range(len(truth)))], **columns})
    data = {"table": rows, "id": "image_id", "target": target, "groups": groups}
    models = {name: {"table": rows, "prediction": name} for name in right}
    resampling = {"replicates": 50, "permutations": 199}
    values = {"audit": "predictions", "data": data, "models": models, "resampling": resampling}
    return audits.run(audits.parse_config(values | config))


@cache
def faces():
    """Two models, a binary target, race and race × gender; of one group there are three images."""
    people = [(race, gender) for race in RACES for gender in ("Female", "Male")]
    race, gender = np.array([*np.repeat(people, 150, axis=0), *[("Roma", "Female")] * 3]).T
    women, place = gender == "Female", np.arange(len(race)) / len(race)
    right = {
        "deepface": np.where(women, 0.2 + 0.4 * place, 0.95),
        "facellm": np.where(women, 0.98, 0.7),
    }
    columns = {"race": race.tolist(), "gender": gender.tolist()}
    return audited(columns, right, "gender", ["race", ["race", "gender"]])


@cache
def many_classes(classes=300):
    """A recognition audit: many classes, and pictures and failures beside."""
    label, group = divmod(np.arange(classes * 4 * 40) // 40, 4)
    columns = {
        "class": [f"class {place:04d}" for place in label],
        "group": [f"group {place}" for place in group],
    }
    chances = 0.5 + label % 3 / 10 + group / 10
    metrics = {"equalized_odds": False, "demographic_parity": False}
    result = audited(columns, {"a": chances, "b": chances}, "class", ["group"], metrics=metrics)
    tables = {
        "gallery": table("section group caption image", [("Maps", "men", "one", PIXEL)]),
        "failures": table(
            "model on groups group stage n of", [("b", "images", "", "", "decode", 23, 4000)]
        ),
    }
    return replace(result, tables={**result.tables, **tables})


@cache
def hostile():
    """Labels that try to leave their place in the page."""
    attack = "</script><script>alert(1)</script>"
    bidi = "left\u202egnp.exe\u2066 \x1b[31m<!--<img src=x onerror=alert(2)>"
    columns = {"label": [attack, bidi, "c"] * 100, bidi: ["{{7*7}}"] * 150 + [attack] * 150}
    chances = np.repeat([0.9, 0.3], 150)
    return audited(columns, {attack: chances}, "label", [bidi])


COMPARED = (
    ("accuracy", "", 0.6848, 0.8829, "deepface", 0.01, Verdict.DISPARITY),
    ("worst_group", "", 0.1296, 0.6083, "deepface", 0.03, Verdict.DISPARITY),
    ("difference", "", 0.5552, 0.2746, "deepface", 0.03, Verdict.DISPARITY),
    ("demographic_parity", "", 0.451, 0.448, "deepface", 0.03, Verdict.INCONCLUSIVE),
    ("equalized_odds", "Female", 0.3816, 0.2835, "deepface", 0.04, Verdict.INCONCLUSIVE),
    ("effect_size_mean", "", 0.2022, 0.2235, "facellm", 0.01, Verdict.BELOW_THRESHOLD),
    ("cramers_v", "Male", 0.1, 0.35, "facellm", 0.03, Verdict.DISPARITY),
    ("skewsize", "", NAN, NAN, "", NAN, Verdict.NOT_ESTIMABLE),
)


_MEASURES = {
    "accuracy": {"metric": "accuracy", "aggregate": Aggregate.VALUE},
    "worst_group": {"metric": "accuracy", "aggregate": Aggregate.WORST_GROUP},
    "difference": {
        "metric": "accuracy", "aggregate": Aggregate.DIFFERENCE, "compared_to": "overall",
    },
}  # fmt: skip


def difference(metric, subject, a, b, worse, spread, verdict):
    """A finding about facellm − deepface; `a` is deepface's value."""
    values = {"value_a": None if math.isnan(a) else a, "value_b": None if math.isnan(b) else b}
    models = {"model_a": "deepface", "model_b": "facellm", "worse": worse}
    return finding(
        audit="comparison",
        model="facellm − deepface",
        **({"metric": metric} if metric not in _MEASURES else {}),
        subject=subject,
        groups="" if metric == "accuracy" else "race × gender",
        value=b - a,
        ci_low=b - a - 2 * spread,
        ci_high=b - a + 2 * spread,
        chance=0.0,
        excess=b - a,
        q_value=0.002 if verdict == Verdict.DISPARITY else 0.8,
        parameters=dict(sorted((values | models).items())),
        change_from="deepface",
        **_MEASURES.get(metric, {}),
        verdict=verdict,
        family=Family.LEAF if subject else Family.COMPOSITE,
        reason="facellm: 2 classes can be estimated" if math.isnan(a) else "",
    )


def comparison():
    """Two models compared on the same images."""
    ranks = [
        (metric, "race × gender", *ranked)
        for metric, *ranked in (
            ("accuracy", "facellm", 0.27, 1, 1, 1, 1.0),
            ("accuracy", "deepface", 0.55, 2, 2, 2, 0.0),
            ("demographic_parity", "facellm", 0.448, 1, 1, 2, 0.6),
            ("demographic_parity", "deepface", 0.451, 2, 1, 2, 0.4),
        )
    ]
    tables = {
        "ranking": table("metric groups model value rank rank_low rank_high share_best", ranks),
        "disagreements": table("sentence", [("accuracy prefers facellm; others deepface.",)]),
    }
    return AuditResult(
        tuple(difference(*arguments) for arguments in COMPARED), faces().manifest, tables
    )


@cache
def augmentation():
    """A network after four trainings, five times each."""
    random, truth = np.random.default_rng(0), np.arange(400) % 2
    answers = {
        ("cnn", arm): np.where(random.random((5, 400)) < share, truth, 1 - truth)
        for arm, share in zip(ARMS, (0.6, 0.7, 0.6, 0.9), strict=True)
    }
    leans = {("ring", "whole"): association_score(*random.normal(size=(3, 8, 4)))}
    counts = {name: dict.fromkeys(product(*NAMES), 100) for name in ("balanced", "test")}
    missing = {"test": {"short": (3, 200)}}
    done = Experiment(
        ("cnn",), *NAMES, truth, answers, {("cnn", "biased"): [leans]}, missing, counts
    )
    return AuditResult(findings_of(done), manifest(), tables_of(done, replicates=100))


@cache
def six_models():
    """Six models, of which the last ones have no disparity."""
    women = np.tile(np.repeat([True, False], 60), 7)
    columns = {
        "race": np.repeat([f"race {place}" for place in range(7)], 120).tolist(),
        "gender": np.where(women, "Female", "Male").tolist(),
        "label": np.tile(["cat", "dog", "fox"], 280).tolist(),
    }
    right = {
        f"model-{place}-of-six": np.where(women, 0.9 - 0.12 * (5 - place), 0.9)
        for place in range(6)
    }
    return audited(columns, right, "label", ["race", ["race", "gender"]])


@cache
def mitigation():
    """A recipe that lowered a disparity of withheld subjects."""
    numbers = {
        "n": 24, "before": 0.8, "after": 0.5, "difference": -0.3, "low": -0.4, "high": -0.2,
        "p_value": 0.001, "q_value": 0.002, "floor": 0.2, "share": 0.5, "share_low": 0.3,
        "share_high": 0.7,
    }  # fmt: skip
    name = {"recipe": "ensemble"}
    bias = name | {"role": "bias", "measure": "ndkl", "about": "hue"} | numbers
    price = name | {"role": "utility", "measure": "accuracy", "about": "objects"} | numbers
    recipe = name | {"conclusion": "transfers", "sentence": "1 of 1 fell", "model": ""}
    subject = name | {"measure": "ndkl", "about": "hue", "subject": "nurse", "fold": 0,
                      "before": 0.8, "after": 0.5, "floor": NAN}  # fmt: skip
    nothing = dict.fromkeys(("chance", "chance_low", "chance_high", "excess", "threshold"), NAN)
    change = finding(
        audit="mitigation", model="ensemble", metric="ndkl", change_from="before", unit="subject",
        value=-0.3, ci_low=-0.4, ci_high=-0.2, verdict=Verdict.NONE, **nothing,
    )  # fmt: skip
    tables = {
        "mitigation": pa.Table.from_pylist([bias, price | {"difference": -0.01, "share": NAN}]),
        "mitigation_recipes": pa.Table.from_pylist([recipe]),
        "mitigation_subjects": pa.Table.from_pylist([subject]),
    }
    return AuditResult((change,), manifest(), tables)
