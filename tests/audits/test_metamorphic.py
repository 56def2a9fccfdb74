"""What should change no conclusion: order, names, another model, a small group."""

import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

from audits.comparisons import images
from equipoise import audits
from equipoise.audits.kinds import KINDS
from equipoise.core import Family
from equipoise.metrics.spec import spec_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Few draws make a test quick.
PERMUTATIONS = 400
DRAWN = {"replicates": 60, "permutations": PERMUTATIONS}
# Names of groups, wherever they stand.
NAMES = {
    "predictions": ("x", "y", "w"),
    "associations": ("Male", "Female"),
    "retrieval": ("man", "woman", "asian", "black", "white"),
    "similarity": ("man", "woman", "asian", "black", "white"),
    "concepts": ("Male", "Female"),
    "diversity": ("India", "Nigeria", "United States", "Vietnam", "Peru"),
    "answers": ("Female", "Male", "under 40", "40 and over"),
    "counterfactuals": ("level", "upright", "red", "yellow", "green", "cyan", "blue", "purple"),
    "text_to_image": ("men", "women", "non_binary", "man", "woman"),
    "generation": ("Black", "Latino", "Middle Eastern", "White", "female", "male"),
    "activations": ("man", "woman"),
    "dataset": ("female", "male", "dark", "light"),
}
# An attribute, others, and how many images are of a group that is too small.
SMALL = {
    "predictions": ("place", (), 12),
    "concepts": ("term", (), 12),
    "diversity": ("region", (), 8),
    "answers": ("gender", ("age",), 12),
    "activations": ("gender", (), 12),
    "retrieval": ("gender", ("race",), 12),
    "similarity": ("gender", ("race",), 12),
    "counterfactuals": ("hue", ("frame",), 12),
}
# Numbers of all images, whatever their group.
OVERALL = ("accuracy", "activation_share", "normalized_similarity_mad")
# Lists whose order has no meaning, beside all mappings.
UNORDERED = {"groups", "metrics", "measures", "measure", "sets", "hypotheses"}


def walk(value, change):
    """Apply a function to each key and each part of a config, the innermost first."""
    if isinstance(value, Mapping):
        value = {change(key): walk(each, change) for key, each in value.items()}
    elif isinstance(value, list):
        value = [walk(each, change) for each in value]
    return change(value)


def on_frames(values, change):
    return walk(values, lambda part: change(part) if isinstance(part, pl.DataFrame) else part)


def example(kind):
    """Return the config of an example with its files in memory, where ids find rows."""
    base = EXAMPLES / kind
    tables = {path.name: pl.read_csv(path) for path in base.glob("*.csv")}
    tables |= {path.name: pl.read_parquet(path) for path in base.glob("*.parquet")}

    def read(part):
        if isinstance(part, str):
            return tables.get(part, part)
        if not isinstance(part, Mapping) or not str(part.get("file")).endswith((".npy", ".npz")):
            return part
        given = np.load(base / part["file"])
        array = given[part["array"]] if "array" in part else given
        # The rows of an array without ids follow the table of its length.
        ids = next((each[:, 0] for each in tables.values() if len(each) == len(array)), None)
        ids = pl.Series(given[part["ids"]]) if "ids" in part else ids
        more = {key: each for key, each in part.items() if key not in ("array", "ids", "names")}
        columns = (
            dict(zip(part["names"], array.astype(float).T, strict=True)) if "names" in part else {}
        )
        more |= {} if columns else {"column": "vector"}
        columns = columns or {"vector": array.astype(np.float32)}
        return {**more, "file": pl.DataFrame({"id": ids, **columns}), "id": "id"}

    return walk(yaml.safe_load((base / "audit.yaml").read_text()), read)


def world(kind):
    if kind == "predictions":
        frame = images(900, seed=3)
        third = pl.when(pl.int_range(pl.len()) % 7 == 0).then(pl.lit("w")).otherwise("place")
        data = {"table": frame.with_columns(place=third), "id": "id", "target": "kind"}
        values = {
            "audit": kind, "data": data | {"groups": ["place"]},
            "models": {name: {"table": frame, "prediction": name} for name in ("skewed", "poor")},
        }  # fmt: skip
    else:
        values = example(kind)
    if kind == "concepts":
        values["versions"] = {}
    if kind == "text_to_image":
        values = on_frames(values, one_guidance)
    if kind in ("retrieval", "similarity", "counterfactuals"):
        values["data"]["min_group_size"] = 30
    return values | {"resampling": values.get("resampling", {}) | DRAWN}


def one_guidance(frame):
    name = frame.columns[0]
    if frame[name].dtype != pl.String or not frame[name].str.starts_with("g1-").any():
        return frame
    return frame.filter(pl.col(name).str.starts_with("g3-"))


def rows(values, kind, folder):
    return on_frames(values, lambda frame: frame.sample(fraction=1.0, shuffle=True, seed=5))


def order(values, kind, folder):
    """Turn round all mappings, such as those of models and targets, and lists without order."""
    if isinstance(values, Mapping):
        turned = {key: order(each, kind, folder) for key, each in reversed(values.items())}
        lists = {key for key in UNORDERED & {*turned} if isinstance(turned[key], list)}
        return turned | {key: turned[key][::-1] for key in lists}
    return [order(each, kind, folder) for each in values] if isinstance(values, list) else values


def names(values, kind, folder):
    """Rename groups so that their alphabetical order turns round."""
    # Without 8, which would be "an 8".
    new = {
        rf"\b{name}\b": f"{digit}{name}"
        for digit, name in zip("97654321", sorted(NAMES[kind]), strict=False)
    }

    def change(part):
        for old, name in new.items():
            if isinstance(part, pl.DataFrame):
                part = part.with_columns(pl.col(pl.String).str.replace_all(old, name))
            elif isinstance(part, str):
                part = re.sub(old, name, part)
        return part

    return walk(values, change)


def model(values, kind, folder):
    """Add a model with the outputs of another, each at another's id."""

    def swap(frame):
        ids = frame[:, 0].unique(maintain_order=True)
        return frame.with_columns(pl.nth(0).replace(ids, ids.shuffle(seed=4)))

    first = next(iter(values["models"].values()))
    return values | {"models": {"0 other": on_frames(first, swap)} | values["models"]}


def small(values, kind, folder):
    """Add images of a group below the minimum size, which have no other attribute."""
    column, others, size = SMALL[kind]
    data = values["data"]
    table = data["table"] if "table" in data else data["images"]["table"]
    ids = table[:, 0].to_list()[:: len(table) // size][:size]

    def grow(frame):
        texts = [name for name in frame.columns if frame[name].dtype == pl.String]
        for name in (name for name in texts if frame[name].is_in(ids).any()):
            own = frame.filter(pl.col(name).is_in(ids)).with_columns(pl.col(name) + " few")
            fresh = {column: "few"} | dict.fromkeys(others)
            known = {key: pl.lit(each, pl.String) for key, each in fresh.items() if key in texts}
            return pl.concat([frame, own.with_columns(**known)])
        return frame

    if kind == "concepts":
        values["choices"]["terms"]["gender"]["Few"] = ["few"]
    return on_frames(values, grow)


def by_place(result):
    """Return findings by place, with names as they were and those of a pair in any order."""
    places = {}
    for one in result.findings:
        texts = one.model, one.metric, one.subject, one.groups, one.version, one.group
        about, *rest = (re.sub(r"\d(?=[A-Za-z])", "", each) for each in (one.subject, *texts))
        plain = (tuple(sorted(each.split(": ")[-1].split(" − "))) for each in rest)
        about = " − ".join(sorted(about.partition(": ")[0].split(" − ")))
        places[*plain, about, one.null.split(";")[0]] = one
    return places


@cache
def found(kind):
    return by_place(audits.run(audits.parse_config(world(kind))))


def ends(one, *, signed):
    both = one.ci_low, one.ci_high
    return np.array(both if signed else sorted(map(abs, both)))


def slack(one):
    """How far draws may move the ends of an interval, in widths: a jackknife has none."""
    return 1e-6 if "jackknife" in one.method else 0.35


def near(one, width):
    """Whether draws may decide the verdict."""
    reach = max(abs(one.ci_low), abs(one.ci_high))
    return 0.01 < one.q_value < 0.07 or abs(reach - one.threshold) < slack(one) * width


def check(one, other, *, signed):
    """Hold a finding to that of another world; without `signed`, its sign follows the names."""
    value, same = (each.value if signed else abs(each.value) for each in (one, other))
    if one.metric != "bias_amplification":
        # That has a value where another's interval leaves out 0.
        assert value == pytest.approx(same, rel=1e-9, abs=1e-12, nan_ok=True)
    if one.family is Family.DESCRIPTIVE:
        return
    had, has = (ends(each, signed=signed) for each in (one, other))
    width = np.nan_to_num(max(abs(had[1] - had[0]), abs(has[1] - has[0])))
    np.testing.assert_allclose(had, has, rtol=0, atol=slack(one) * width + 1e-9)
    if not math.isnan(one.p_value):
        # Of two sides it is twice that of the smaller tail.
        each = (p * (2 - p) for p in (one.p_value, other.p_value))
        spread = max(1 / PERMUTATIONS, *each)
        error = 4 * math.sqrt(2 * spread / PERMUTATIONS)
        assert one.p_value == pytest.approx(other.p_value, abs=error + 1 / PERMUTATIONS)
    assert one.verdict == other.verdict or near(one, width) or near(other, width)


RELATIONS = {
    rows: [*KINDS],
    order: [*KINDS],
    names: [*KINDS],
    model: [kind for kind in KINDS if kind not in ("generation", "text_to_image")],
    small: [*SMALL],
}


def marks(relation, kind):
    return [pytest.mark.slow] if kind == "associations" and relation not in (rows, names) else []


@pytest.mark.parametrize(
    ("relation", "kind"),
    [
        pytest.param(relation, kind, marks=marks(relation, kind))
        for relation, kinds in RELATIONS.items()
        for kind in kinds
    ],
)
def test_conclusions_stay(relation, kind, tmp_path):
    changed = by_place(audits.run(audits.parse_config(relation(world(kind), kind, tmp_path))))
    for place, one in found(kind).items():
        if relation is not small or one.metric not in OVERALL:
            check(one, changed[place], signed=relation is not names)
    assert relation in (model, small) or len(changed) == len(found(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_most_verdicts_do_not_hang_on_the_draws(kind):
    tested = [one for one in found(kind).values() if one.tested]
    sure = [one for one in tested if not near(one, np.nan_to_num(one.ci_high - one.ci_low))]
    assert len(sure) >= len(tested) / 3


def twice(findings):
    """Return tested findings of which another states the same fact by the record of a metric."""
    tested, classes = set(), {}
    for one in findings:
        at = one.model, one.groups, one.version, one.group, one.null.split(";")[0]
        classes.setdefault(at, set()).add(one.subject)
        if one.tested:
            tested.add((one.metric, one.subject, at))
    facts = []
    for metric, subject, at in tested:
        spec, others = spec_of(metric), classes[at] - {"", subject}
        facts += [(spec.fold, subject, at)] if spec.fold else []
        facts += (
            [(spec.mirror, one, at) for one in others] if spec.mirror and len(others) == 1 else []
        )
    return tested & {*facts}


@pytest.mark.parametrize("kind", KINDS)
def test_no_fact_of_an_example_is_tested_twice(kind):
    assert not twice(found(kind).values())


def test_no_fact_of_two_classes_is_tested_twice():
    values = world("predictions")
    frame = images(900, kinds=2)
    data = values["data"] | {"table": frame}
    models = {"poor": {"table": frame, "prediction": "poor"}}
    result = audits.run(audits.parse_config(values | {"data": data, "models": models}))
    assert sum(one.tested for one in result.findings) > 5
    assert not twice(result.findings)
