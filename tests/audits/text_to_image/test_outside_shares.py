"""Shares that are declared lead before an even split."""

import polars as pl
import pytest

from equipoise import audits
from equipoise.core import Verdict

SHOWN = {"roofer": 0, "bartender": 19, "nurse": 72}
OUTSIDE = {"roofer": 0.02, "bartender": 0.6, "nurse": 0.9}
ROWS = 80


def run(outside):
    """Audit 80 images of each target by a classifier without an error."""
    images = pl.DataFrame([
        {"id": f"{target}-{place}", "prompt": target, "gender": "man" if place >= n else "woman"}
        for target, n in SHOWN.items()
        for place in range(ROWS)
    ])  # fmt: skip
    labelled = images.with_columns(said=pl.col("gender"))
    share = {
        "of": "gender",
        "classes": {"man": ["man"], "woman": ["woman"]},
        "said": {"engine": {"table": images, "id": "id", "said": "gender"}},
        "labelled": {"table": labelled, "id": "id", "label": "gender", "said": "said"},
        "outside": outside,
    }
    config = {
        "audit": "text_to_image",
        "prompts": {"targets": [*SHOWN], "template": "{}"},
        "generators": {"engine": {"images": {"table": images, "id": "id", "prompt": "prompt"}}},
        "shares": [share],
        "associations": None,
        "resampling": {"replicates": 200, "permutations": 1999},
    }
    return audits.run(audits.parse_config(config))


def real(result):
    return [conclusion for conclusion in result.conclusions if conclusion.real]


def test_only_departures_from_the_declared_shares_are_conclusions():
    table = pl.DataFrame([
        {"target": target, "group": group, "value": value}
        for target, woman in OUTSIDE.items()
        for group, value in (("woman", woman), ("man", 1 - woman))
    ])  # fmt: skip
    (conclusion,) = real(run({"table": table, "target": "target", "group": "group"}))
    assert (conclusion.subject, conclusion.group) == ("bartender", "woman")
    assert conclusion.verdict is Verdict.DISPARITY
    assert conclusion.group_value == pytest.approx(19 / 80)
    assert conclusion.other_value == pytest.approx(0.6)
    assert conclusion.size == pytest.approx(0.6 - 19 / 80)


def test_equal_shares_are_expected_where_none_are_declared():
    subjects = {conclusion.subject for conclusion in real(run("uniform"))}
    assert subjects == {*SHOWN}


@pytest.mark.parametrize(("kind", "real_gap"), [(None, False), ("sample", False), ("census", True)])
def test_outside_counts_are_a_sample_unless_they_are_exact(kind, real_gap):
    # 19 of 80 images show a woman, and so do 11 of 28 people: no difference, unless they are all.
    table = pl.DataFrame(
        {"target": ["bartender"] * 2, "group": ["woman", "man"], "value": [11, 17]}
    )
    outside = {"table": table} | ({} if kind is None else {"kind": kind})
    result = run(outside)
    (gap,) = (finding for finding in result.findings if finding.metric == "share_gap")
    assert (gap.p_value <= 0.05) == real_gap
    assert any("kind: census" in note for note in result.manifest.notes) == (kind is None)
