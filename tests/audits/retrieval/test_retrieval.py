"""The audit of retrieval: planted disparities are detected, and unusual input is noted."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.core import DataError, InputError, Verdict

ROOT = Path(__file__).resolve().parents[3]
QUERIES = ("chef", "nurse", "pilot")
N = 120


def table():
    return pl.DataFrame(
        {
            "image": [f"i{k:03d}" for k in range(N)],
            "gender": ["man", "woman"] * (N // 2),
            "race": ["a", "a", "b", "b", "c", "c"] * (N // 6),
            "job": [QUERIES[k // (N // 3)] for k in range(N)],
            "set": [f"s{k // 6}" for k in range(N)],
        }
    )


def images(seed=0):
    return np.random.default_rng(seed).standard_normal((N, 5))


def prompts():
    return np.random.default_rng(1).standard_normal((3, 5))


def query_table():
    return pl.DataFrame({"query": QUERIES})


def values(**changes):
    config = {
        "audit": "retrieval",
        "data": {"images": {"table": table(), "id": "image"}, "groups": ["gender"]},
        "queries": {"table": query_table(), "id": "query"},
        "models": {"m": {"images": {"file": images()}, "queries": {"file": prompts()}}},
        "metrics": {"normalized_similarity_mad": False},
        "ranking": {"k": 10, "curves": False},
        "resampling": {"replicates": 100, "permutations": 200, "seed": 3},
    }
    for key, value in changes.items():
        old = config.get(key, {})
        config[key] = {**old, **value} if isinstance(value, dict) and key != "models" else value
    return config


def run(**changes):
    return audits.run(audits.parse_config(values(**changes)))


def by_metric(result, version="default"):
    return {(f.metric, f.subject): f for f in result.findings if f.version == version}


PROMPTS = pl.DataFrame(
    {
        "query": [f"{article} {job}" for job in QUERIES for article in ("a", "one")],
        "job": [job for job in QUERIES for _ in range(2)],
    }
)
IMAGES = {"table": table(), "id": "image"}
BY_JOB = {"images": IMAGES, "groups": ["gender"], "subject": "job"}
BY_RACE = {"images": IMAGES, "groups": ["race"]}
ASKED = {"table": PROMPTS, "id": "query", "subject": "job"}


def test_pools_that_are_too_small_are_counted():
    jobs = np.repeat(QUERIES, (70, 30, 20))
    uneven = {**BY_JOB, "images": {"table": table().with_columns(job=jobs), "id": "image"}}
    result = run(data=uneven, ranking={"prefixes": 60, "k": [10, 25]})
    counted = [note[:27] for note in result.manifest.notes if "pools" in note]
    assert counted == ["m, gender: 1 of 3 pools hav", "m, gender: 2 of 3 pools hav"]
    # NDKL is over the same prefixes at every K: one fact.
    assert {finding.version for finding in result.findings if finding.metric == "ndkl"} == {
        "default"
    }
    findings = by_metric(result, "default")
    assert findings["ndkl", "nurse"].verdict == Verdict.NOT_ESTIMABLE
    assert not np.isnan(findings["ndkl", "chef"].value)


def test_scores_in_memory_and_reread_scores_give_the_same_numbers(monkeypatch):
    ranking = {"ranking": {"curves": True}, "metrics": {"normalized_similarity_mad": True}}
    in_memory = run(**ranking)
    monkeypatch.setattr("equipoise.audits.rankings.designs._CELLS", 0)
    reread = run(**ranking)
    assert str(reread.findings) == str(in_memory.findings)
    numbers = [
        {name: repr(table.to_pydict()) for name, table in result.tables.items()}
        for result in (reread, in_memory)
    ]
    assert numbers[0] == numbers[1]


def test_the_plan_counts_images_in_no_group_by_missing_attribute():
    place = pl.int_range(pl.len())
    holes = table().with_columns(
        gender=pl.when(place < 3).then(None).otherwise("gender"),
        race=pl.when((place == 2) | (place > 117)).then(None).otherwise("race"),
    )
    data = {"images": {"table": holes, "id": "image"}, "groups": [["gender", "race"], "gender"]}
    planned = audits.plan(audits.parse_config(values(data=data))).groups
    none = [(row["groups"], row["images"], row["note"]) for row in planned if not row["group"]]
    assert none == [
        ("gender × race", 2, "gender missing"),
        ("gender × race", 2, "race missing"),
        ("gender × race", 1, "gender and race missing"),
        ("gender", 3, "gender missing"),
        ("race", 3, "race missing"),
    ]
    for groups in ("gender × race", "gender", "race"):
        assert sum(row["images"] for row in planned if row["groups"] == groups) == N


def test_ndkl_names_the_group_at_the_top_of_the_order():
    """Women fill the first half and men the second, but for one woman at the very end."""
    order = ["woman"] * 35 + ["man"] * 36 + ["woman"]
    ranked = pl.DataFrame({"image": [f"r{k}" for k in range(72)], "gender": order})
    scores = pl.DataFrame({"chef": -np.arange(72.0)})
    result = run(
        data={"images": {"table": ranked, "id": "image"}, "groups": ["gender"]},
        models={"m": {"scores": {"file": scores}}}, queries=None, ranking={"prefixes": 71},
    )  # fmt: skip
    finding = by_metric(result)["ndkl", ""]
    assert finding.direction.endswith(
        "lowest for man (12.0\u00a0%), highest for woman (88.0\u00a0%)"
    )
    shares = {estimate.group: estimate.value for estimate in finding.by_group}
    places = np.arange(1, 72)
    women = np.cumsum([name == "woman" for name in order[:71]]) / places
    weights = 1 / np.log2(places + 1)
    assert shares["woman"] == pytest.approx((women * weights).sum() / weights.sum(), rel=1e-12)


def test_images_without_a_subject_count_as_unmatched():
    holes = table().with_columns(
        job=pl.when(pl.col("image") < "i030").then(None).otherwise(pl.col("job"))
    )
    data = {**BY_JOB, "images": {"table": holes, "id": "image"}}
    with pytest.raises(DataError, match="subject of 30 images"):
        run(data=data)
    notes = run(data={**data, "max_unmatched": 0.5}).manifest.notes
    assert "Images without job (30) are not compared." in notes


def test_images_of_a_subject_without_a_usable_query_are_counted():
    bad, everyone = prompts(), {"table": query_table(), "id": "query"}
    bad[2] = np.nan
    few = {"table": query_table().head(2), "id": "query"}
    vectors = {"images": {"file": images()}, "queries": {"file": prompts()}}
    one_bad = {**vectors, "queries": {"file": bad}}
    noise = np.random.default_rng(4).standard_normal((2, N))
    scores = pl.DataFrame(dict(zip(QUERIES, noise, strict=False)))
    for data, queries, model, n_unmatched in (
        (BY_JOB, everyone, one_bad, 40),
        (BY_JOB, few, {**vectors, "queries": {"file": bad[:2]}}, 40),
        (BY_JOB, ASKED, {"scores": {"file": scores}}, 40),
        (BY_JOB, everyone, vectors, 0),
        ({**BY_JOB, "subject": None}, everyone, one_bad, 0),
    ):
        section = {**data, "max_unmatched": 0.5}
        config = audits.parse_config(values(data=section, queries=queries, models={"m": model}))
        (planned,) = audits.plan(config).details["models"]
        assert planned["images whose subject no usable query asks for"] == n_unmatched
        notes = [note for note in audits.run(config).manifest.notes if "asks for" in note]
        assert len(notes) == bool(n_unmatched)


def test_sets_that_vary_one_of_two_attributes_are_noted():
    """Sets of a man and a woman of one race: nothing is exchanged between races."""
    pairs = table().with_columns(set=pl.Series([f"s{k // 2}" for k in range(N)]))
    images = {"table": pairs, "id": "image"}
    result = run(data={"images": images, "groups": [["gender", "race"]], "sets": "set"})
    (note,) = [note for note in result.manifest.notes if "no set" in note]
    assert note.startswith("m, race (within gender): ")
    race_findings = [
        f for f in result.findings if f.groups == "race" and "preference" not in f.metric
    ]
    assert {f.verdict for f in race_findings} == {Verdict.NONE}


def test_a_desired_share_of_nothing_makes_ndkl_infinite():
    result = run(ranking={"desired": {"man": 1, "woman": 0}})
    findings = by_metric(result)
    ndkl = findings["ndkl", "chef"]
    assert (ndkl.value, ndkl.verdict) == (np.inf, Verdict.NONE)
    assert all(findings[key].reason for key in (("ndkl", ""), ("skew_at_k", "woman")))


@pytest.mark.parametrize("step", [audits.run, audits.plan])
@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"data": BY_JOB, "ranking": {"k": 100_000}}, "ranking.k and ranking.prefixes"),
        ({"data": BY_JOB, "ranking": {"prefixes": 41}}, "ranking.k and ranking.prefixes"),
        ({"ranking": {"desired": {"Woman": 0.5, "Man": 0.5}}}, "ranking.desired"),
        ({"ranking": {"desired": {"man": 0.5}}}, "ranking.desired"),
        ({"ranking": {"desired": {"man": 0.5, "woman": 0.6}}}, "ranking.desired"),
        ({"data": BY_RACE, "ranking": {"first": "a"}}, "ranking.first"),
        ({"data": BY_RACE, "ranking": {"first": "a", "second": "zz"}}, "ranking.first"),
        ({"data": BY_RACE, "ranking": {"first": "a", "second": "a"}}, "ranking.first"),
        ({"data": BY_RACE, "metrics": ["bias_at_k"]}, "ranking.first"),
        ({"data": {**BY_JOB, "subject": None, "sets": "image"}}, "images"),
        ({"data": {**BY_JOB, "subject": None, "sets": "gender"}}, "images"),
    ],
)
def test_a_choice_that_fits_no_groups_is_refused(step, changes, key):
    with pytest.raises((DataError, InputError)) as raised:
        step(audits.parse_config(values(**changes)))
    assert str(raised.value).startswith(key)


def test_desired_shares_and_named_groups_of_a_single_choice_are_noted():
    desired = {"a": 0.5, "b": 0.25, "c": 0.25}
    opposed = {"first": "a", "second": "c"}
    data = {**BY_RACE, "groups": ["gender", "race", ["gender", "race"]]}
    ranking = {**opposed, "desired": desired}
    result = run(data=data, metrics=["max_skew", "bias_at_k"], ranking=ranking)
    notes = " ".join(result.manifest.notes)
    assert "no shares of gender, gender × race" in notes
    assert "it isn't measured for gender × race" in notes
    params = {
        (f.metric, f.groups): f.parameters
        for f in result.findings
        if not f.subject and f.version == "default"
    }
    assert params["max_skew", "race"]["desired"] == desired
    assert params["max_skew", "gender"]["desired"] == "pool"
    assert params["bias_at_k", "race"]["second"] == "c"
    # Two groups are opposed as they are, whatever the names given for more.
    assert params["bias_at_k", "gender"]["second"] == "woman"
    assert ("bias_at_k", "gender × race") not in params


def test_rows_in_another_order_are_matched_by_their_ids_and_noted():
    order = np.random.default_rng(7).permutation(N)
    stored = pl.DataFrame({"image_id": table()["image"].gather(order), "e": images()[order]})
    texts = pl.DataFrame({"text": QUERIES, "e": prompts()})[::-1]
    with_ids = run(models={"m": {"images": {"file": stored}, "queries": {"file": texts}}})
    assert by_metric(with_ids).keys() == by_metric(run()).keys()
    for key, item in by_metric(run()).items():
        np.testing.assert_equal(by_metric(with_ids)[key].value, item.value)
    notes = [note for note in with_ids.manifest.notes if "are matched by" in note]
    assert [note.split(": ", 1)[1] for note in notes] == [
        "rows are matched by 'image_id', which has the ids of the items.",
        "rows are matched by 'text', which has the ids of the items.",
    ]


def test_ids_of_other_images_are_refused():
    others = pl.DataFrame({"image_id": [f"x{k}" for k in range(N)], "e": images()})
    with pytest.raises(DataError, match=r"'image_id' has 0 of the 120 ids of .*`id:`"):
        run(models={"m": {"images": {"file": others}, "queries": {"file": prompts()}}})
