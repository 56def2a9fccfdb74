"""Codes of views of text: those of Arrow's dictionary, whatever the texts and the memory."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.metrics import columns, texts
from equipoise.metrics.columns import Column, listed
from equipoise.metrics.texts import coded_views
from equipoise.stats import threads

LONG = ["a text of more than twelve bytes", "a text of more than twelve bytes!", "ärger über Öl"]
WORDS = ["", "x", "twelve bytes", "thirteen byte", "élan", *LONG, None]
RNG = np.random.default_rng(7)


def same_as_dictionary(column: pa.ChunkedArray) -> None:
    found = coded_views(column)
    assert found is not None
    assert found.codes.dtype == np.int32
    texts = found.texts.to_pylist()
    names = [texts[code] if code >= 0 else None for code in found.codes]
    assert names == [text or None for text in column.to_pylist()]
    assert texts == [*dict.fromkeys(name for name in names if name)]


@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=40), min_size=1, max_size=3))
def test_codes_and_names(chunks: list[list[str | None]]) -> None:
    column = pa.chunked_array(chunks, pa.string_view())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "_APART", 1_000)
        for some in (column, column.slice(3, 25)):
            if len(some):
                same_as_dictionary(some)


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_rows_spread_over_threads_have_the_codes_of_one(seed: int, workers: int) -> None:
    rng = np.random.default_rng(seed)
    # Some texts come late, some stand at two places of the memory.
    words = pl.Series([f"a word of a long name {code % 35}" for code in range(40)])
    rows = np.sort(rng.integers(0, len(words), 300))[rng.permutation(300) // 7 * 7]
    column = pa.chunked_array(words.gather(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EQUIPOISE_THREADS", str(workers))
        patch.setattr(threads, "_FEW", 1)
        patch.setattr(texts, "_ROOM", 4)
        patch.setattr(texts, "_RATHER", 1)
        patch.setattr(texts, "_APART", 1_000)
        same_as_dictionary(column)
        same_as_dictionary(pa.chunked_array([*column.chunks, *column[5:].chunks]))


def test_no_rows() -> None:
    assert coded_views(pa.chunked_array([], pa.string_view())) is None


def test_texts_shared_by_their_place_in_memory() -> None:
    words = pl.Series([f"a word of a long name {code}" for code in range(20_000)])
    series = words.gather(RNG.integers(0, len(words), 300_000))
    same_as_dictionary(pa.chunked_array(series))
    same_as_dictionary(pa.chunked_array(pl.concat([series, series[:10]], rechunk=False)))


def test_equal_texts_at_several_places_have_one_code() -> None:
    words = pl.Series([f"a word of a long name {code % 5_000}" for code in range(6_000)])
    column = pa.chunked_array(words.gather(RNG.permutation(60_000) % len(words)))
    assert len(coded_views(column).texts) == 5_000
    same_as_dictionary(column)


@pytest.mark.parametrize("distinct", [10, 50_000])
def test_rows_that_share_no_texts_are_left_to_arrow(
    distinct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = pl.Series([f"a word of a long name {code % distinct}" for code in range(60_000)])
    assert coded_views(pa.chunked_array(labels)) is None
    monkeypatch.setattr(columns, "_MANY", 1)
    column = Column.of(labels, what="y_true")
    assert listed(column.texts(column.places())) == labels.to_list()


@pytest.mark.parametrize("many", [1, 1 << 19])
def test_columns_of_views(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_MANY", many)
    labels = pl.Series(WORDS * 3)
    column = Column.of(labels, what="y_true")
    places = column.places()
    assert column.lacks().tolist() == [not text for text in labels]
    assert listed(column.texts(places[places > 0])) == [text for text in labels if text]


def test_more_views_than_there_is_room_for_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_ROOM", 4)
    monkeypatch.setattr(texts, "_RATHER", 1)
    same_as_dictionary(pa.chunked_array([[str(code) for code in range(500)]], pa.string_view()))
