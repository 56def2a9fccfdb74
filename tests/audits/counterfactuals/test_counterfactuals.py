"""The audit of counterfactual sets: the protocol, both chance levels, any number of attributes."""

import math
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

from equipoise import audits
from equipoise.audits.rankings.page import fixed, queries
from equipoise.core import ConfigError, DataError
from equipoise.metrics import max_skew
from goldens import Golden
from retrieval_plain import ndkl as plain_ndkl
from retrieval_plain import skews as plain_skews

ROOT = Path(__file__).resolve().parents[3]
SUBJECTS = ("chef", "nurse", "pilot")
POOL_ORDER = "null: pool order"
ATTRIBUTES = {"race": ("a", "b", "c"), "gender": ("man", "woman")}
BODY = {"body": ("x", "y")}


def table(sets=12, **more):
    """Whole sets of every combination, for three subjects."""
    varied = {**ATTRIBUTES, **more}
    rows = [
        {"subject": subject, "set": f"{subject}{number}", **dict(zip(varied, values, strict=True))}
        for subject in SUBJECTS
        for number in range(sets)
        for values in product(*varied.values())
    ]
    return pl.DataFrame(rows).with_row_index("image").cast({"image": pl.String})


def images(frame, seed=0):
    """Return vectors: men point along the first axis, and members of a set are similar."""
    rng = np.random.default_rng(seed)
    _, codes = np.unique(frame["set"].to_numpy(), return_inverse=True)
    vectors = rng.standard_normal((codes.max() + 1, 6))[codes]
    vectors += 0.3 * rng.standard_normal(vectors.shape)
    vectors[:, 0] = np.where(frame["gender"].to_numpy() == "man", 1.0, -1.0)
    return vectors


def prompts():
    """Return two prompts a subject: chef points to men, nurse to women, pilot to neither."""
    vectors = np.random.default_rng(1).standard_normal((6, 6))
    vectors[:, 0] = (3.0, 3.0, -3.0, -3.0, 0.0, 0.0)
    return vectors


def query_table():
    texts = [f"{opening} {subject}" for subject in SUBJECTS for opening in ("a", "a photo of a")]
    return pl.DataFrame(
        {"prompt": texts, "subject": [subject for subject in SUBJECTS for _ in range(2)]}
    )


def values(frame=None, **changes):
    frame = table() if frame is None else frame
    config = {
        "audit": "counterfactuals",
        "data": {"images": {"table": frame, "id": "image"}, "groups": [["race", "gender"]]},
        "queries": {"table": query_table(), "id": "prompt", "subject": "subject"},
        "models": {"m": {"images": {"file": images(frame)}, "queries": {"file": prompts()}}},
        "resampling": {"replicates": 100, "permutations": 200, "seed": 3},
    }
    return {**config, **changes}


def run(frame=None, **changes):
    return audits.run(audits.parse_config(values(frame, **changes)))


def by_metric(result, version="default"):
    return {(f.metric, f.subject): f for f in result.findings if f.version == version}


def scored(frame):
    """Scores of each image for its own subject, and the places of its subject."""
    vectors, texts = images(frame), prompts()
    units = texts / np.linalg.norm(texts, axis=1, keepdims=True)
    means = units.reshape(3, 2, 6).mean(axis=1)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    owner = np.array([SUBJECTS.index(subject) for subject in frame["subject"]])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return (unit * means[owner]).sum(axis=1), owner


def test_each_subject_is_the_protocol_done_plainly():
    frame = table()
    scores, owner = scored(frame)
    groups = frame["race"].to_numpy() + ", " + frame["gender"].to_numpy()
    names = sorted(set(groups))
    codes = np.array([names.index(group) for group in groups])
    findings = by_metric(run(frame))
    for place, subject in enumerate(SUBJECTS):
        mine = owner == place
        plain = plain_skews(scores[mine], codes[mine], 6, 6, "pool")
        assert findings["max_skew", subject].value == pytest.approx(max(plain.values()))
        assert findings["min_skew", subject].value == pytest.approx(min(plain.values()))
        plain = plain_ndkl(scores[mine], codes[mine], 36, 6, "pool")
        assert findings["ndkl", subject].value == pytest.approx(plain)
    skews = [findings["max_skew", subject].value for subject in SUBJECTS]
    assert findings["max_skew", ""].value == pytest.approx(np.mean(skews))
    assert findings["max_skew", ""].parameters["k"] == 6
    assert findings["ndkl", ""].parameters["k"] == 36
    assert findings["max_skew", ""].method == (
        "score interval with Student's t by the jackknife over queries"
    )


def test_each_entry_of_groups_has_its_own_k():
    frame = table()
    images_and_groups = {"images": {"table": frame, "id": "image"}}
    ks = {"race × gender": 5, "gender": 4}
    groups = [["race", "gender"], "gender"]
    result = run(frame, data={**images_and_groups, "groups": groups}, ranking={"k": ks})
    ks_by_design = {
        (finding.groups, finding.version): finding.parameters["k"]
        for finding in result.findings
        if finding.metric == "max_skew" and not finding.subject and "null" not in finding.version
    }
    # A marginal is of no entry: its K is the number of its groups.
    assert ks_by_design == {
        ("race × gender", "default"): 5, ("gender", "default"): 4,
        ("gender", "within race"): 2, ("race", "within gender"): 3,
    }  # fmt: skip
    # Bias@K over all images of a subject, by hand.
    scores, owner = scored(frame)
    signs = np.where(frame["gender"].to_numpy() == sorted(frame["gender"].unique())[0], 1, -1)
    by_hand = [
        signs[owner == place][np.argsort(-scores[owner == place])[:4]].mean()
        for place in range(len(SUBJECTS))
    ]
    bias = {
        finding.subject: finding.value
        for finding in result.findings
        if (finding.metric, finding.groups, finding.version) == ("bias_at_k", "gender", "default")
    }
    assert bias[""] == pytest.approx(np.mean(by_hand))
    assert result.manifest.resolved["ranking"]["k"] == {name: [k] for name, k in ks.items()}


@pytest.mark.parametrize(
    ("k", "key"), [({"sex": 2}, "ranking.k"), ({"race × gender": 0}, "gender")]
)
def test_a_k_of_no_entry_or_of_no_image_is_an_error(k, key):
    with pytest.raises(ConfigError, match=key):
        run(ranking={"k": k})


def data(frame, *more):
    return {"images": {"table": frame, "id": "image"}, "groups": [["race", "gender", *more]]}


def test_three_attributes_have_marginals_within_the_other_two():
    frame = table(sets=13, **BODY)
    result = run(frame, data=data(frame, "body"))
    versions = {f.version for f in result.findings if f.groups == "gender"}
    assert "within race × body" in versions
    mine = frame["subject"].to_numpy() == "chef"
    mask = (frame["race"].to_numpy() == "a") & (frame["body"].to_numpy() == "y") & mine
    scores, _ = scored(frame)
    gender = frame["gender"].to_numpy()[mask]
    alone = max_skew(scores[mask], gender, k=2, resampling=None).value
    findings = by_metric(result, "within race × body")
    assert findings["max_skew", "chef | a, y"].value == pytest.approx(alone)


@pytest.mark.parametrize(("shared", "within", "prefixes"), [(0.0, 1.015, 0.35), (0.9, 0.76, None)])
def test_chance_equals_the_protocol_without_any_preference(shared, within, prefixes):
    """K = 12 of 50 sets of 12 images: the paper prints 1.02 and 0.34 to 0.37 for CLIP."""
    golden = Golden("social_counterfactuals.json")
    size = golden["images_per_set"]["race-gender"]
    attributes = {"race": tuple("abcdef"), "gender": ("man", "woman")}
    subjects = [f"subject {number}" for number in range(24)]
    rows = [
        {
            "subject": subject,
            "set": f"{subject}, {number}",
            **dict(zip(attributes, values, strict=True)),
        }
        for subject in subjects
        for number in range(50)
        for values in product(*attributes.values())
    ]
    frame = pl.DataFrame(rows).with_row_index("image").cast({"image": pl.String})
    rng = np.random.default_rng(8)
    scores = math.sqrt(shared) * np.repeat(rng.standard_normal(50 * 24), size)
    scores += math.sqrt(1 - shared) * rng.standard_normal(len(frame))
    score_table = frame.select("image").with_columns(
        pl.Series(scores).alias(subject) for subject in subjects
    )
    result = run(
        frame,
        models={"m": {"scores": {"file": score_table, "id": "image"}}},
        queries=None,
        ranking={"marginals": False, "curves": False},
        resampling={"replicates": 10, "permutations": 200},
    )
    pool = by_metric(result, POOL_ORDER)
    assert pool["max_skew", ""].chance == pytest.approx(1.015, abs=0.02)
    assert by_metric(result)["max_skew", ""].chance == pytest.approx(within, abs=0.04)
    printed = golden["ndkl_mean_by_model_race_gender"]["CLIP"]
    if prefixes is not None:
        assert pool["ndkl", ""].chance == pytest.approx(prefixes, abs=0.01)
        assert printed == pytest.approx(prefixes, abs=0.02)


def test_incomplete_and_repeated_sets_are_counted():
    lacking = table().filter(pl.col("image") != "0")
    twice = pl.concat([lacking, lacking[40:41].with_columns(image=pl.lit("again"))])
    note = "race × gender: of 36 sets, 1 lack an image of some combination and 1 have several"
    assert any(text.startswith(note) for text in run(twice).manifest.notes)
    planned = audits.plan(audits.parse_config(values(twice)))
    assert planned.details["sets"] == [
        {"groups": "race × gender", "subjects": 3, "sets": 36, "incomplete": 1, "repeated": 1}
    ]


def test_the_page_shows_models_side_by_side_and_skew_within_each_value():
    frame, texts = table(), prompts()
    models = {
        name: {"images": {"file": images(frame, seed)}, "queries": {"file": texts}}
        for name, seed in (("m", 0), ("other", 5))
    }
    result = run(frame, models=models)
    findings = by_metric(result, "within race")
    charts = {
        chart.title: chart
        for block in fixed(result).blocks
        for chart in getattr(block, "charts", ())
    }
    assert {*charts} == {"MaxSkew@K, gender (within race)", "MaxSkew@K, race (within gender)"}
    marks = charts["MaxSkew@K, gender (within race)"].rows
    assert [(row["label"], row["series"]) for row in marks][:2] == [("a", "m"), ("b", "m")]
    for row in marks:
        skews = sorted(
            f.value for f in result.findings
            if (f.metric, f.version, f.model) == ("max_skew", "within race", row["series"])
            and f.subject.endswith(f" | {row['label']}")
        )  # fmt: skip
        assert len(skews) == len(SUBJECTS)
        assert row["value"] == pytest.approx(np.mean(skews))
        assert (row["low"], row["high"]) == pytest.approx(tuple(np.percentile(skews, [25, 75])))
    assert ("max_skew", "chef | a") in findings
    query_charts = [
        chart for block in queries(result).blocks for chart in getattr(block, "charts", ())
    ]
    (chef,) = (chart for chart in query_charts if chart.title == "chef, race × gender")
    assert {row["row"] for row in chef.rows} == {"m", "other"}


def test_one_pair_of_attributes_and_some_subjects(tmp_path):
    """Rows that `where` names: a text, or the lines of a file."""
    frame = pl.concat([table(body=BODY["body"]), table(4)], how="diagonal_relaxed")
    frame = frame.drop("image").with_row_index("image").cast({"image": pl.String})
    (tmp_path / "some.txt").write_text("chef\n\nnurse\n")
    where = {"subject": {"file": "some.txt"}, "body": "x"}
    data = {"images": {"table": frame, "id": "image", "where": where}, "groups": ["gender"]}
    frame.write_parquet(tmp_path / "images.parquet")
    np.save(tmp_path / "v.npy", images(frame))
    query_table().write_csv(tmp_path / "asked.csv")
    np.save(tmp_path / "q.npy", prompts())
    config = values(frame, data=data | {"images": data["images"] | {"table": "images.parquet"}})
    config["queries"]["table"] = "asked.csv"
    config["models"]["m"] = {"images": {"file": "v.npy"}, "queries": {"file": "q.npy"}}
    (tmp_path / "audit.yaml").write_text(yaml.safe_dump(config))
    checked = audits.load_config(tmp_path / "audit.yaml")
    assert checked.data.images.where["subject"].values == ("chef", "nurse")
    result = audits.run(checked, base=tmp_path)
    measured = [f for f in result.findings if f.metric == "ndkl" and not math.isnan(f.value)]
    assert {f.subject for f in measured} == {"", "chef", "nurse"}
    sizes = {row["group"]: row["n"] for row in result.tables["group_sizes"].to_pylist()}
    assert sizes == {"man": 72, "woman": 72}
    # A resolved configuration has the values themselves, and needs no file.
    (tmp_path / "some.txt").unlink()
    again = audits.parse_config(result.manifest.resolved)
    assert again.data.images.where["subject"].values == ("chef", "nurse")


def test_a_file_of_values_that_has_none(tmp_path):
    (tmp_path / "none.txt").write_text("\n \n")
    where = {"subject": {"file": str(tmp_path / "none.txt")}}
    frame = table()
    data = {"images": {"table": frame, "id": "image", "where": where}, "groups": ["gender"]}
    with pytest.raises(DataError) as raised:
        run(frame, data=data)
    assert raised.value.file == str(tmp_path / "none.txt")
