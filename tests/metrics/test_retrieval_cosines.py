"""Rankings of vectors: as float64 has them, ties and all, whatever the blocks and threads."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.core.errors import InputError
from equipoise.metrics import (
    cosine_scores,
    max_skew,
    ndkl,
    normalized_similarity_mad,
    retrieval_curves,
)
from equipoise.metrics.chosen_rows import ChosenRows
from equipoise.metrics.retrieval import cosines
from equipoise.metrics.retrieval.cosines import Hits
from equipoise.metrics.retrieval.kernels import group_sums, inner, reaching
from equipoise.stats.resampling import Bootstrap

FEW = Bootstrap(replicates=20, permutations=20, resolution=0.05)


def unit(rows: np.ndarray) -> np.ndarray:
    double = rows.astype(np.float64)
    return double / np.linalg.norm(double, axis=1, keepdims=True)


def world(seed: int, n: int, d: int = 24, queries: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((n, d)) * rng.uniform(0.1, 10.0, (n, 1))
    return images.astype(np.float32), rng.standard_normal((queries, d)).astype(np.float32)


def expected(scores: np.ndarray, k: int) -> np.ndarray:
    """Items among the k best, all that tie with the k-th included."""
    return np.flatnonzero(scores >= np.sort(scores)[-k])


def is_best(
    images: np.ndarray, queries: np.ndarray, k: int, rows: np.ndarray | None = None
) -> None:
    held = np.arange(len(images)) if rows is None else rows
    found = cosine_scores(images, queries).best(range(len(queries)), held, k)
    for query, (items, scores) in enumerate(found):
        plain = unit(images)[held] @ unit(queries)[query]
        best = held[expected(plain, k)]
        assert np.sort(items).tolist() == best.tolist()
        order = np.argsort(items)
        assert scores[order] == pytest.approx(plain[expected(plain, k)], abs=1e-15)


@pytest.mark.parametrize("k", [1, 7, 500, 4_999, 5_000])
def test_the_best_are_those_of_float64(k: int) -> None:
    is_best(*world(k, 5_000), k)


def test_blocks_of_several_rounds_and_rows_that_are_not_all() -> None:
    images, queries = world(1, 40_000, queries=2)
    search = cosines.Search(queries, lambda _: (images, images[0]), 40_000, 5, 0.0)
    assert [len(starts) for starts in search._rounds()] == [5, 5, 10]
    is_best(images, queries, 20)
    is_best(images, queries, 20, np.flatnonzero(np.arange(40_000) % 3 > 0))


def test_sorted_images_set_a_low_bar_first_and_none_is_lost() -> None:
    images, queries = world(2, 40_000, queries=1)
    order = np.argsort(unit(images) @ unit(queries)[0])
    is_best(images[order], queries, 50)
    is_best(images[order[::-1]], queries, 50)


def test_more_queries_than_are_compared_at_once() -> None:
    images, queries = world(3, 2_500, d=8, queries=1_100)
    is_best(images, queries, 4)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8])
def test_vectors_of_any_type_and_length(kind: Any) -> None:
    images, queries = world(4, 3_000, d=37)
    scaled = np.clip(np.round(3 * images), -100, 100) if kind is np.int8 else images
    kept = np.flatnonzero(np.abs(scaled).sum(axis=1) > 0)
    is_best(scaled[kept].astype(kind), queries, 11)
    is_best((images.astype(np.float64) * 1e120)[:200], queries, 5)
    is_best(images * np.float32(1e-22), queries, 5)
    is_best(images * np.float32(1e20), queries, 5)


def test_scores_closer_than_float32_can_tell_are_told_apart() -> None:
    rng = np.random.default_rng(5)
    query = rng.standard_normal(64)
    images = query + 1e-4 * rng.standard_normal((6_000, 64))
    is_best(images, query[None], 10)


def test_equal_vectors_tie_and_share_the_places_left() -> None:
    images, queries = world(6, 60, queries=1)
    copies = np.concatenate([images, images, images])
    groups = np.repeat(["a", "b", "c"], 60)
    found = max_skew(cosine_scores(copies, queries), groups, k=4, resampling=None)
    # Two images whole, and one place for the three copies of the next.
    assert found.params["tied_items"] == 3
    assert found.value == pytest.approx(0.0, abs=1e-12)
    every = cosine_scores(np.tile(images[:1], (9_000, 1)), queries)
    equal = max_skew(every, np.arange(9_000) % 3, k=5, resampling=None)
    assert equal.params["tied_items"] == 9_000
    assert equal.value == pytest.approx(0.0, abs=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_metrics_are_those_of_the_table_of_scores(seed: int, own: bool, gaps: bool) -> None:
    images, queries = world(seed, 90, d=5)
    rng = np.random.default_rng(seed)
    groups = np.array(["x", "y", None if gaps else "z"], dtype=object)[rng.integers(0, 3, 90)]
    owner = np.array(["q", "r", "" if gaps else "s"], dtype=object)[rng.integers(0, 3, 90)]
    table = unit(queries) @ unit(images).T
    scores = cosine_scores(images, queries, names=["q", "r", "s"])
    if own:
        place = {"q": 0, "r": 1, "s": 2, "": 0}
        short = table[[place[name] for name in owner], np.arange(90)]
        vectors = {"scores": scores, "queries": owner}
        plain = {"scores": short, "queries": owner}
        if gaps:  # A query of the scores that no image belongs to has no pool.
            vectors["scores"] = cosine_scores(images, queries[:2], names=["q", "r"])
    else:
        vectors, plain = {"scores": scores}, {"scores": table, "queries": ["q", "r", "s"]}
    for metric in (max_skew, ndkl):
        for extra in ({}, {"within": np.arange(90) % 2}, {"sets": np.arange(90) // 5}):
            one = metric(**vectors, groups=groups, k=6, resampling=FEW, **extra)
            other = metric(**plain, groups=groups, k=6, resampling=FEW, **extra)
            assert str(one) == str(other)
            assert str(one.by) == str(other.by)
    curves = [
        retrieval_curves(**one, groups=groups, k=5, resampling=FEW) for one in (vectors, plain)
    ]
    assert str(curves[0]) == str(curves[1])
    values = [
        normalized_similarity_mad(**one, groups=groups, resampling=None).value
        for one in (vectors, plain)
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-12)


def test_the_same_bytes_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    images, queries = world(7, 30_000, d=16, queries=5)
    groups = np.arange(30_000) % 4
    found = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("EQUIPOISE_THREADS", threads)
        scores = cosine_scores(images, queries)
        every = ndkl(scores, groups, k=30, resampling=FEW)
        own = ndkl(scores, groups, k=30, queries=np.arange(30_000) % 5, resampling=FEW)
        spread = normalized_similarity_mad(scores, groups, resampling=FEW)
        found.append(str([(one, one.by) for one in (every, own, spread)]))
    assert found[0] == found[1] == found[2]


def test_memory_mapped_vectors(tmp_path: Path) -> None:
    images, queries = world(8, 3_000)
    np.save(tmp_path / "images.npy", images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    groups = np.arange(3_000) % 3
    one, other = (
        ndkl(cosine_scores(rows, queries), groups, k=9, resampling=None)
        for rows in (mapped, images)
    )
    assert str(one.by) == str(other.by)


@pytest.mark.parametrize(
    ("items", "queries", "names", "message"),
    [
        ([[1, 2], [3]], [[1, 2]], None, r"^items: vectors of different lengths; expected one"),
        ([["a", "b"]], [[1, 2]], None, r"^items: values of type <U1; expected real numbers$"),
        ([1, 2], [[1, 2]], None, r"^items: shape \(2,\); expected \(vectors, numbers\), not em"),
        ([[1, 2]], np.zeros((0, 2)), None, r"^queries: shape \(0, 2\); expected \(vectors, n"),
        ([[1, 2]], [[1, 2, 3]], None, r"^queries: vectors of 3 numbers; expected 2, as in items$"),
        ([[1, 2]], [[1, 2], [0, 0]], None, r"^queries: vector 2 is zero or not finite, and has"),
        ([[1, 2]], [[np.nan, 2]], None, r"^queries: vector 1 is zero or not finite, and has no c"),
        (
            [[1, 2]], [[1, 2], [2, 1]], ["a", "a"],
            r"^names: 2 names, 1 of them distinct; expected 2 distinct ones, one per query$",
        ),
    ],
)  # fmt: skip
def test_bad_vectors(items: Any, queries: Any, names: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cosine_scores(items, queries, names=names)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0.0, r"^items: vector 8 is zero, and has no cosine\. Leave such items out$"),
        (np.nan, r"^items: vector 8 holds a number that is not finite, and has no cosine\. Leave"),
        (np.inf, r"^items: vector 8 holds a number that is not finite, and has no cosine\. Leave"),
    ],
)
def test_vectors_without_a_cosine_are_named_where_they_are_ranked(
    own: bool, value: float, message: str
) -> None:
    images, queries = world(9, 40)
    images[7] = value
    groups = np.array(["a", "b"] * 20, dtype=object)
    scores = cosine_scores(images, queries)
    owner = np.arange(40) % 3 if own else None
    with pytest.raises(InputError, match=message):
        max_skew(scores, groups, k=3, queries=owner, resampling=None)
    # An item that is in no pool is not ranked.
    groups[7] = None
    assert max_skew(scores, groups, k=3, queries=owner, resampling=None).value > 0


def test_items_belong_to_queries_by_name() -> None:
    images, queries = world(10, 6)
    with pytest.raises(
        InputError,
        match=r"^queries: 'z' is no query of the scores; expected their names, such as 'a'$",
    ):
        max_skew(
            cosine_scores(images, queries, names=list("abc")), list("xyxyxy"), k=1,
            queries=list("abcabz"),
        )  # fmt: skip


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 31, 32, 33, 100])
def test_inner_products(kind: Any, size: int) -> None:
    rng = np.random.default_rng(size)
    block, queries = rng.standard_normal((9, size)).astype(kind), rng.standard_normal((4, size))
    owner = rng.integers(0, 4, 9)
    dots, squares = np.empty(9), np.empty(9)
    inner(block, owner, queries, dots, squares)
    double = block.astype(np.float64)
    assert dots == pytest.approx((double * queries[owner]).sum(axis=1), abs=1e-13)
    assert squares == pytest.approx((double**2).sum(axis=1), abs=1e-13)


@given(st.integers(0, 10**6), st.sampled_from([1, 63, 64, 65, 200]))
def test_what_reaches_the_bar(seed: int, items: int) -> None:
    rng = np.random.default_rng(seed)
    products = rng.standard_normal((3, items)).astype(np.float32)
    inverse = rng.uniform(0.5, 2.0, items).astype(np.float32)
    bar = rng.choice([-np.inf, -1.0, 1.5, np.inf], 3).astype(np.float32)
    found = Hits.of(products, inverse, bar, 10 * np.arange(items))
    rows, columns = np.nonzero(products * inverse >= bar[:, None])
    assert found.query.tolist() == rows.tolist()
    assert found.place.tolist() == (10 * columns).tolist()
    assert found.score.tolist() == (products * inverse)[rows, columns].tolist()
    room = np.empty(1, np.int16), np.empty(1, np.int32), np.empty(1, np.float32)
    assert reaching(products, inverse, bar, *room) == len(rows)


@given(st.integers(0, 10**6))
def test_sums_by_group(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (3, 600)).astype(np.int32)
    scores = rng.standard_normal((600, 5))
    sums, counts = np.zeros((3, 4, 5)), np.zeros((3, 4))
    group_sums(codes, scores, sums, counts)
    for draw, labels in enumerate(codes):
        for group in range(4):
            assert counts[draw, group] == (labels == group).sum()
            assert sums[draw, group] == pytest.approx(scores[labels == group].sum(axis=0))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_of_a_mapped_table_rank_as_a_copy_of_them(dtype: Any, tmp_path: Path) -> None:
    images, queries = world(3, 90)
    np.save(tmp_path / "images.npy", images.astype(dtype))
    table = np.load(tmp_path / "images.npy", mmap_mode="r")
    for rows in (np.arange(90), np.arange(5, 80), np.arange(0, 90, 2), np.arange(89, -1, -1)):
        chosen = ChosenRows(table, rows)
        groups = {"g": np.arange(len(rows)) % 3}
        one, other = (
            max_skew(cosine_scores(given, queries), groups, k=7, resampling=FEW)
            for given in (chosen, np.array(table[rows]))
        )
        assert one.value == other.value
        assert [part.value for part in one.parts] == [part.value for part in other.parts]
        np.testing.assert_array_equal(chosen[2:9], table[rows][2:9])


def test_rows_that_follow_each_other_cost_no_copy() -> None:
    table = np.arange(60.0).reshape(20, 3)
    assert np.shares_memory(ChosenRows(table, np.arange(4, 16))[2:9], table)
    assert not np.shares_memory(ChosenRows(table, np.array([4, 6, 5, 7]))[0:4], table)
    assert len(ChosenRows(table, np.arange(4))[0:0]) == 0
