"""Skews in words: which number is the logarithm, which the factor, and who is absent."""

from functools import cache

import numpy as np
import polars as pl
import pytest

from audits.retrieval.test_retrieval import by_metric
from equipoise import audits, report
from equipoise.cli.runs import page_of
from equipoise.report.words import certainty, sentence

LIKED = {"first": "ab", "second": "a", "third": "abc"}
GROUPS = np.array(["a", "b", "c"] * 4)


@cache
def audited():
    """Rank 12 images for three queries; only groups that a query likes are among the first 4."""
    likes = [[float(group in liked) for group in "abc"] + [1.0] for liked in LIKED.values()]
    images = np.column_stack([GROUPS[:, None] == [*"abc"], np.linspace(0.1, 0.0, len(GROUPS))])
    table = pl.DataFrame({"image": [f"i{place}" for place in range(len(GROUPS))], "group": GROUPS})
    values = {
        "audit": "retrieval",
        "data": {
            "images": {"table": table, "id": "image"}, "groups": ["group"], "min_group_size": 2
        },
        "queries": {"table": pl.DataFrame({"query": [*LIKED]}), "id": "query"},
        "models": {"m": {"images": {"file": images.astype(float)},
                         "queries": {"file": np.array(likes)}}},
        "metrics": ["max_skew", "min_skew", "skew_at_k"],
        "ranking": {"k": 4, "curves": False},
        "resampling": {"replicates": 50, "permutations": 99, "seed": 3},
    }  # fmt: skip
    return audits.run(audits.parse_config(values))


@pytest.mark.parametrize(
    ("metric", "subject", "stated"),
    [
        ("min_skew", "", "None of the top 4 of m shows one of the groups for 2 of 3 queries"),
        ("min_skew", "second", "None of the top 4 of m for “second” shows b or c"),
        ("skew_at_k", "c", "None of the top 4 of m shows c for 2 of 3 queries"),
        ("skew_at_k", "b", "None of the top 4 of m shows b for 1 of 3 queries"),
    ],
)
def test_a_skew_of_minus_infinity_names_who_is_absent(metric, subject, stated):
    finding = by_metric(audited())[metric, subject]
    assert finding.value == -np.inf
    assert sentence(finding).startswith(stated)
    assert "0.00 times" not in certainty(finding)


def test_a_factor_stands_beside_its_logarithm():
    finding = by_metric(audited())["max_skew", "second"]
    assert finding.value == pytest.approx(np.log(3.0))
    assert certainty(finding).startswith("MaxSkew@K 3.00 times")
    assert "(ln 1.099, " in certainty(finding)


def test_tables_name_the_logarithm_and_what_the_sizes_of_groups_count():
    result = audited()
    html = report.render(result, page_of(result))
    assert "MaxSkew@K, ln" in html
    assert "In the pool" in html
    assert "n = 4)" not in html
