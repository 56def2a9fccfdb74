"""Changes without effect on conclusions: order, names, another model, a small group."""

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
from equipoise.core import Family
from equipoise.discovery import KINDS
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
    "regression": ("man", "woman"),
    "questions": ("black", "white", "men", "women"),
    "dataset": ("female", "male", "dark", "light"),
}
# An attribute, others, and how many images are of a group that is too small.
SMALL = {
    "predictions": ("place", (), 12),
    "concepts": ("term", (), 12),
    "diversity": ("region", (), 8),
    "answers": ("gender", ("age",), 12),
    "activations": ("gender", (), 12),
    "regression": ("gender", ("band",), 12),
    "questions": ("gender", ("race",), 12),
    "retrieval": ("gender", ("race",), 12),
    "similarity": ("gender", ("race",), 12),
    "counterfactuals": ("hue", ("frame",), 12),
}
# Numbers of all images, whatever their group.
OVERALL = ("accuracy", "activation_share", "normalized_similarity_mad")
# Lists whose order has no meaning, beside all mappings.
UNORDERED = {"groups", "metrics", "measure", "sets", "hypotheses"}


def walk(value, change):
    """Apply a function to each key and each part of a config, the innermost first."""
    if isinstance(value, Mapping):
        value = {change(key): walk(part, change) for key, part in value.items()}
    elif isinstance(value, list):
        value = [walk(part, change) for part in value]
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
        loaded = np.load(base / part["file"])
        array = loaded[part["array"]] if "array" in part else loaded
        # The rows of an array without ids follow the table of its length.
        ids = next((table[:, 0] for table in tables.values() if len(table) == len(array)), None)
        ids = pl.Series(loaded[part["ids"]]) if "ids" in part else ids
        more = {key: entry for key, entry in part.items() if key not in ("array", "ids", "names")}
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


def order(values, kind, folder):
    """Shuffle the rows of all tables, and turn round mappings and lists without order."""
    return turned_round(
        on_frames(values, lambda frame: frame.sample(fraction=1.0, shuffle=True, seed=5))
    )


def turned_round(values):
    """Turn round all mappings, such as of models and targets, and lists without order."""
    if isinstance(values, Mapping):
        turned = {key: turned_round(part) for key, part in reversed(values.items())}
        lists = {key for key in UNORDERED & {*turned} if isinstance(turned[key], list)}
        return turned | {key: turned[key][::-1] for key in lists}
    return [turned_round(part) for part in values] if isinstance(values, list) else values


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
    column, cleared_columns, size = SMALL[kind]
    data = values["data"]
    table = data["table"] if "table" in data else data["images"]["table"]
    ids = table[:, 0].to_list()[:: len(table) // size][:size]

    def grow(frame):
        texts = [name for name in frame.columns if frame[name].dtype == pl.String]
        for name in (name for name in texts if frame[name].is_in(ids).any()):
            new_rows = frame.filter(pl.col(name).is_in(ids)).with_columns(pl.col(name) + " few")
            fresh = {column: "few"} | dict.fromkeys(cleared_columns)
            cells = {key: pl.lit(cell, pl.String) for key, cell in fresh.items() if key in texts}
            return pl.concat([frame, new_rows.with_columns(**cells)])
        return frame

    if kind == "concepts":
        values["choices"]["terms"]["gender"]["Few"] = ["few"]
    return on_frames(values, grow)


def by_place(result):
    """Return findings by place, with names as they were and those of a pair in any order."""
    places = {}
    for finding in result.findings:
        # The subject of a pair names all metrics but the first of the configuration.
        subject = re.sub(r" \([^()]*\)$", "", finding.subject)
        subject = subject if finding.metric == "concept_difference" else finding.subject
        texts = (
            finding.model,
            f"{finding.metric} {finding.parameters.get('metric')}",
            subject,
            finding.groups,
            finding.version,
            finding.group,
        )
        about, *cleaned = (re.sub(r"\d(?=[A-Za-z])", "", text) for text in (subject, *texts))
        parts = (tuple(sorted(text.split(": ")[-1].split(" − "))) for text in cleaned)
        about = " − ".join(sorted(about.partition(": ")[0].split(" − ")))
        places[*parts, about, finding.null] = finding
    return places


@cache
def findings_of(kind):
    return by_place(audits.run(audits.parse_config(world(kind))))


def ends(finding, *, signed):
    limits = finding.ci_low, finding.ci_high
    return np.array(limits if signed else sorted(map(abs, limits)))


def slack(finding):
    """How far draws may move the ends of an interval, in widths: a jackknife has none."""
    return 1e-6 if "jackknife" in finding.method else 0.35


def near_threshold(finding, width):
    """Whether draws may decide the verdict."""
    reach = max(abs(finding.ci_low), abs(finding.ci_high))
    return 0.01 < finding.q_value < 0.07 or abs(reach - finding.threshold) < slack(finding) * width


def check(finding, other, *, signed):
    """Hold a finding to that of another world; without `signed`, its sign follows the names."""
    value, same = (
        world_finding.value if signed else abs(world_finding.value)
        for world_finding in (finding, other)
    )
    if finding.metric != "bias_amplification":
        # That has a value where another's interval leaves out 0.
        assert value == pytest.approx(same, rel=1e-9, abs=1e-12, nan_ok=True)
    if finding.family is Family.DESCRIPTIVE:
        return
    had, has = (ends(world_finding, signed=signed) for world_finding in (finding, other))
    width = np.nan_to_num(max(abs(had[1] - had[0]), abs(has[1] - has[0])))
    np.testing.assert_allclose(had, has, rtol=0, atol=slack(finding) * width + 1e-9)
    if not math.isnan(finding.p_value):
        # Of two sides it is twice that of the smaller tail.
        variances = (p * (2 - p) for p in (finding.p_value, other.p_value))
        spread = max(1 / PERMUTATIONS, *variances)
        error = 4 * math.sqrt(2 * spread / PERMUTATIONS)
        assert finding.p_value == pytest.approx(other.p_value, abs=error + 1 / PERMUTATIONS)
    assert (
        finding.verdict == other.verdict
        or near_threshold(finding, width)
        or near_threshold(other, width)
    )


RELATIONS = {
    order: [*KINDS],
    names: [*KINDS],
    model: [kind for kind in KINDS if kind not in ("generation", "text_to_image")],
    small: [*SMALL],
}


def marks(relation, kind):
    return [pytest.mark.slow] if kind == "associations" and relation is model else []


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
    for place, finding in findings_of(kind).items():
        # Findings without groups are about all rows, the added ones too.
        if relation is not small or (finding.groups and finding.metric not in OVERALL):
            check(finding, changed[place], signed=relation is not names)
    assert relation in (model, small) or len(changed) == len(findings_of(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_most_verdicts_do_not_depend_on_the_draws(kind):
    tested = [finding for finding in findings_of(kind).values() if finding.tested]
    sure = [
        finding
        for finding in tested
        if not near_threshold(finding, np.nan_to_num(finding.ci_high - finding.ci_low))
    ]
    assert len(sure) >= len(tested) / 3


def twice(findings):
    """Return tested findings of which another states the same fact by the record of a metric."""
    tested, classes = set(), {}
    for finding in findings:
        at = (
            finding.model,
            finding.groups,
            finding.version,
            finding.group,
            finding.null,
        )
        classes.setdefault(at, set()).add(finding.subject)
        if finding.tested:
            tested.add((finding.metric, finding.subject, at))
    facts = []
    for metric, subject, at in tested:
        spec, other_classes = spec_of(metric), classes[at] - {"", subject}
        facts += [(spec.fold, subject, at)] if spec.fold else []
        facts += (
            [(spec.mirror, other, at) for other in other_classes]
            if spec.mirror and len(other_classes) == 1
            else []
        )
    return tested & {*facts}


@pytest.mark.parametrize("kind", KINDS)
def test_no_fact_of_an_example_is_tested_twice(kind):
    assert not twice(findings_of(kind).values())


def test_no_fact_of_two_classes_is_tested_twice():
    values = world("predictions")
    frame = images(900, kinds=2)
    data = values["data"] | {"table": frame}
    models = {"poor": {"table": frame, "prediction": "poor"}}
    result = audits.run(audits.parse_config(values | {"data": data, "models": models}))
    assert sum(finding.tested for finding in result.findings) > 5
    assert not twice(result.findings)
