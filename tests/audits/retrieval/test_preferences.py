"""What leads a report of rankings: declared preferences, else those over all queries."""

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.cli.runs import page_of
from equipoise.core import Family, Verdict
from equipoise.report.summary import summarize

JOBS = [f"job {number:02d}" for number in range(40)]


def audit(liked, *, kind="retrieval", declared=None, unit=None, ids="i{}{}", jobs=JOBS):
    """Audit 24 images for every job, of which women have `liked` more than men."""
    rng = np.random.default_rng(7)
    n = 24 * len(jobs)
    table = pl.DataFrame(
        {
            "image": [ids.format(place // 4, "abcd"[place % 4]) for place in range(n)],
            "gender": ["man", "woman"] * (n // 2),
            "job": np.repeat(jobs, 24),
            "person": [f"p{place // 4}" for place in range(n)],
        }
    )
    preference = np.where(table["gender"] == "woman", np.repeat(liked[: len(jobs)], 24), 0.0)
    scores = pl.DataFrame({job: preference + rng.standard_normal(n) for job in jobs})
    config = {
        "audit": kind,
        "data": {"images": {"table": table, "id": "image"}, "groups": ["gender"], "subject": "job"},
        "models": {"m": {"scores": {"file": scores}}},
        "resampling": {"replicates": 200, "permutations": 400},
    }
    if kind == "retrieval":
        config["ranking"] = {"k": 8, "curves": False}
        config["metrics"] = {"normalized_similarity_mad": False}
    if unit:
        config["data"]["unit"] = unit
    if declared is not None:
        named = pl.DataFrame({"job": JOBS, "who": declared})
        config["hypotheses"] = [{"table": named, "concept": "job", "favours": "who"}]
    return audits.run(audits.parse_config(config))


def statement(result):
    page = page_of(result)
    (first,) = summarize(result, page.leads, page.caveat).statements
    return first.finding


HALF = np.repeat([2.0, -2.0], 20)
STEREOTYPE = np.repeat(["woman", "man"], 20)


@pytest.mark.parametrize("kind", ["retrieval", "similarity"])
def test_a_declared_stereotype_leads_where_preferences_cancel(kind):
    lead = statement(audit(HALF, kind=kind, declared=STEREOTYPE))
    assert (lead.metric, lead.verdict) == ("favourite_gap", Verdict.DISPARITY)


@pytest.mark.parametrize("kind", ["retrieval", "similarity"])
def test_single_queries_lead_before_a_mean_that_cancels(kind):
    result = audit(HALF, kind=kind)
    lead = statement(result)
    assert lead.subject in JOBS
    assert (lead.family, lead.verdict) == (Family.QUERY, Verdict.DISPARITY)
    strength = next(
        finding for finding in result.findings if finding.metric == "preference_strength"
    )
    assert (strength.verdict, strength.leads) == (Verdict.DETECTED, False)
    # Single queries have their disparities, corrected and counted apart.
    single = [
        finding for finding in result.findings if finding.tested and finding.family == Family.QUERY
    ]
    assert sum(finding.verdict == Verdict.DISPARITY for finding in single) >= 20
    assert not any(finding.leads for finding in single if not finding.subject)


@pytest.mark.parametrize("kind", ["retrieval", "similarity"])
def test_single_queries_of_chance_or_beside_a_tested_stereotype_never_lead(kind):
    assert statement(audit(np.zeros(40), kind=kind)).family is not Family.QUERY
    unrelated = np.tile(["woman", "man"], 20)
    result = audit(HALF, kind=kind, declared=unrelated)
    assert statement(result).metric == "favourite_gap"
    assert not any(finding.leads for finding in result.findings if finding.family is Family.QUERY)


def test_the_group_that_is_ranked_last_everywhere_leads():
    result = audit(np.full(40, 0.8))
    lead = statement(result)
    assert (lead.metric, lead.group) == ("systematic_preference", "man")
    assert (lead.verdict, lead.value < -0.05) == (Verdict.DISPARITY, True)
    preferences = [
        finding for finding in result.findings if finding.metric == "systematic_preference"
    ]
    assert [finding.family for finding in preferences if finding is not lead] == [
        Family.FOLD,
        Family.FOLD,
    ]


def test_similarity_states_the_size_of_a_preference_in_scores():
    """A ranking follows differences of any size, so the size is shown with the shares."""
    result = audit(np.full(40, 0.8), kind="similarity")
    lead = statement(result)
    (effect,) = (
        row["effect"]
        for row in result.tables["group_effects"].to_pylist()
        if (row["concept"], row["group"]) == ("", lead.group)
    )
    assert f"{abs(effect):.3f}" in lead.beside
    assert "mean score" not in statement(audit(np.full(40, 0.8))).beside


def test_few_queries_keep_their_findings_and_are_warned_of():
    result = audit(HALF, jobs=JOBS[:4])
    assert statement(result).metric == "max_skew"
    assert any(text.startswith("m: 4 queries") for text in result.manifest.warnings)
    assert not audit(HALF).manifest.warnings


PERSONS = "person_{:02d}_{}.jpg"


@pytest.mark.parametrize(
    ("ids", "unit", "n_warnings"),
    [(PERSONS, None, 1), (PERSONS, "person", 0), ("img_{}{}", None, 0)],
)
def test_ids_that_look_like_units_are_warned_of(ids, unit, n_warnings):
    warnings = audit(HALF, ids=ids, unit=unit).manifest.warnings
    assert len([text for text in warnings if "`unit`" in text]) == n_warnings


@pytest.mark.parametrize("kind", ["retrieval", "similarity"])
def test_a_note_says_how_many_independent_queries_alike_ones_are_worth(kind):
    rng = np.random.default_rng(3)
    groups = {"gender": ["man", "woman"] * 60, "age": ["old"] * 60 + ["young"] * 60}
    table = pl.DataFrame({"image": [f"i{n}" for n in range(120)], **groups})
    alike = np.repeat(rng.standard_normal((8, 120)), 3, axis=0)
    for noise, lower, upper in ((0.1, 8.0, 8.0), (30.0, 20.0, 24.0)):
        scores = alike + noise * rng.standard_normal(alike.shape)
        config = {
            "audit": kind,
            "data": {"images": {"table": table, "id": "image"}, "groups": [*groups]},
            "models": {"m": {"scores": {"file": pl.DataFrame(scores.T, schema=JOBS[:24])}}},
            "resampling": {"replicates": 50, "permutations": 50},
        }
        if kind == "retrieval":
            config["ranking"] = {"k": 8, "curves": False}
            config["metrics"] = ["max_skew", "normalized_similarity_mad"]
        result = audits.run(audits.parse_config(config))
        for name in groups:
            worth = next(
                finding.parameters["effective_subjects"]
                for finding in result.findings
                if (finding.metric, finding.groups) == ("systematic_preference", name)
            )
            assert lower - 0.5 <= worth <= upper
            noted = [
                note.partition(": ")[0]
                for note in result.manifest.notes
                if f"{worth:.1f} independent" in note
            ]
            assert any(f"m, {name}" in about for about in noted) == (upper < 24)
