"""Embeddings: one content in many files, matched by id, read where asked, looked over once."""

from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from equipoise.core import DataError
from equipoise.data import ArraySource, ItemSource, Outputs, load_items, load_vectors
from equipoise.data.labels import Where

N, D = 40, 6
IDS = [f"im{place:02d}" for place in range(N)]
X = np.random.default_rng(3).normal(size=(N, D)).astype(np.float16)
ORDER = np.random.default_rng(4).permutation(N)


def items(ids=None):
    return load_items(ItemSource(pl.DataFrame({"id": IDS if ids is None else ids}), "id"))


def shuffled_ids():
    return [IDS[place] for place in ORDER]


def as_npy(path, dtype):
    np.save(path / "x.npy", X[ORDER].astype(dtype))
    (path / "ids.txt").write_text("\r\n".join(shuffled_ids()))
    return ArraySource(path / "x.npy", ids=path / "ids.txt")


def as_compressed_npz(path, dtype):
    ids = np.array([text.encode() for text in shuffled_ids()])
    np.savez_compressed(path / "x.npz", emb=X[ORDER].astype(dtype), other=X, ids=ids)
    return ArraySource(path / "x.npz", array="emb", ids="ids")


def as_safetensors(path, dtype):
    # The booleans come first in the file, so the vectors start at an odd byte.
    arrays = {"emb": X[ORDER].astype(dtype), "a": np.ones(3, dtype=bool)}
    save_file(arrays, path / "x.safetensors", {"model": "a"})
    pl.DataFrame({"id": shuffled_ids()}).write_parquet(path / "ids.parquet")
    return ArraySource(path / "x.safetensors", ids=path / "ids.parquet")


def as_lists(path, dtype):
    cells = pa.array([*X[ORDER].astype(dtype)])
    pq.write_table(
        pa.table({"image": shuffled_ids(), "emb": cells}), path / "x.pq", row_group_size=7
    )
    return ArraySource(path / "x.pq", id="image")


FORMATS = [as_npy, as_compressed_npz, as_safetensors, as_lists]


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("write", FORMATS)
def test_every_format_gives_the_same_vectors_in_their_own_type(write, dtype, tmp_path):
    vectors = load_vectors(write(tmp_path, dtype), items())
    selected = vectors.take([3, 0, 3])
    assert vectors.dtype == selected.dtype == dtype
    assert vectors.dimension == D
    assert selected.dtype.isnative
    np.testing.assert_array_equal(selected, X[[3, 0, 3]].astype(dtype))
    np.testing.assert_array_equal(vectors.take(range(N)), X.astype(dtype))
    assert vectors.usable.all()
    assert isinstance(vectors.stored, np.memmap) == (write is as_npy)
    assert vectors.counts["matched"] == vectors.counts["rows"] == N


@pytest.mark.parametrize("ids", [[7.0, 8.0, 9.0], [b"7", b"8", b"9"]])
def test_ids_meet_as_text_whatever_they_are_stored_as(ids, tmp_path):
    np.savez(tmp_path / "x.npz", emb=X[:3], ids=np.array(ids))
    vectors = load_vectors(ArraySource(tmp_path / "x.npz", ids="ids"), items([9, 8, 7]))
    assert vectors.rows.tolist() == [2, 1, 0]
    # Ids with a leading zero are other ids.
    with pytest.raises(DataError, match="no id matches an id in items"):
        load_vectors(ArraySource(tmp_path / "x.npz", ids="ids"), items(["07", "08", "09"]))


def test_an_empty_cell_is_an_item_without_a_vector(tmp_path):
    fixed = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.float32(), 2))
    table = pa.table({"id": ["a", "b", "c"], "emb": fixed})
    pq.write_table(table, tmp_path / "x.parquet")
    wide = b"id,d0,d1\na,1,2\nb,,\nc,3,4\n"
    (tmp_path / "x.csv").write_bytes(wide)
    for file in (tmp_path / "x.parquet", table, tmp_path / "x.csv"):
        vectors = load_vectors(ArraySource(file), items(["c", "b", "a"]), max_unmatched=0.5)
        assert vectors.rows.tolist() == [2, -1, 0]
        counts = vectors.counts["empty"], vectors.counts["items_without_row"], vectors.unmatched
        assert counts == (1, 1, 1)
        np.testing.assert_array_equal(vectors.take([0, 2]), [[3, 4], [1, 2]])


HALVES = [*X[:30].tolist(), None, *X[30:].tolist()]
KINDS = {"fixed": pa.list_(pa.float16(), D), "lists": pa.list_(pa.float16())}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("group", [7, 100])
def test_a_dictionary_of_halves_gives_the_numbers_that_were_written(kind, group, tmp_path):
    path, ids = tmp_path / "x[1].parquet", [*IDS, "last"]
    table = pa.table({"id": ids, "emb": pa.array(HALVES, KINDS[kind])})
    for checksums in (False, True):
        pq.write_table(table, path, row_group_size=group, write_page_checksum=checksums)
        vectors = load_vectors(ArraySource(path), items(ids), max_unmatched=0.1)
        assert vectors.dtype == np.float16
        assert np.flatnonzero(vectors.rows < 0).tolist() == [30]
        np.testing.assert_array_equal(vectors.take([*range(30), *range(31, N + 1)]), X)


@pytest.mark.parametrize("wrong", [[1.0], [None] * D, []])
def test_a_row_of_a_dictionary_of_halves_that_is_no_vector_is_named(wrong, tmp_path):
    cells = pa.array([*X[:20].tolist(), wrong, *X[21:].tolist()], KINDS["lists"])
    pq.write_table(pa.table({"id": IDS, "emb": cells}), tmp_path / "x.parquet", row_group_size=7)
    with pytest.raises(DataError) as raised:
        load_vectors(ArraySource(tmp_path / "x.parquet"), items())
    error = raised.value
    assert (error.file, error.column, error.row) == (str(tmp_path / "x.parquet"), "emb", 21)


@pytest.mark.parametrize("checksums", [False, True])
def test_damage_to_a_dictionary_of_halves_is_one_error_or_changes_nothing(checksums, tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"id": IDS, "emb": pa.array(X.tolist(), KINDS["fixed"])})
    pq.write_table(table, path, row_group_size=20, write_page_checksum=checksums)
    chunk = pq.read_metadata(path).row_group(1).column(1)
    content, start = path.read_bytes(), chunk.dictionary_page_offset
    # The header has no checksum of its own. Without any, changed numbers can't be noticed.
    end = start + (chunk.total_compressed_size if checksums else 14)
    n_refused = 0
    for place in range(start, end, 3):
        damaged = bytearray(content)
        damaged[place] ^= 0x80
        path.write_bytes(damaged)
        try:
            vectors = load_vectors(ArraySource(path), items())
        except DataError as error:
            n_refused += error.file == str(path)
        else:
            np.testing.assert_array_equal(vectors.take(range(N)), X)
    assert n_refused > (end - start) / 6


def test_a_footer_that_counts_other_rows_than_its_row_groups_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"id": IDS, "emb": pa.array(X.tolist(), KINDS["fixed"])})
    pq.write_table(table, path, row_group_size=20)
    content, n_refused = path.read_bytes(), 0
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    # The rows in all are a field of 64 bits, N = 40, twice that in its encoding.
    for place in (at for at in range(start, len(content)) if content[at : at + 2] == b"\x16\x50"):
        damaged = bytearray(content)
        damaged[place + 1] = 60
        path.write_bytes(damaged)
        with pytest.raises(DataError) as raised:
            load_vectors(ArraySource(path, column="emb"), items())
        n_refused += raised.value.file == str(path)
    assert n_refused == 1


def odd():
    values = np.eye(7, dtype=np.float64)
    values[1, 0], values[2, 3], values[3] = np.nan, -np.inf, 0
    values[4, 0], values[5] = 1e200, 0
    values[5, 0] = 1e-200
    return values


def test_vectors_that_metrics_cannot_use_are_told_apart():
    ids = [f"{place}" for place in range(7)]
    vectors = load_vectors(ArraySource(odd()), items(ids))
    assert np.flatnonzero(vectors.not_finite).tolist() == [1, 2]
    assert np.flatnonzero(vectors.zero).tolist() == [3]
    assert np.flatnonzero(~vectors.usable).tolist() == [1, 2, 3]
    assert vectors.counts["not_finite"] == 2
    np.testing.assert_array_equal(vectors.take([3]), np.zeros((1, 7)))


@pytest.mark.parametrize(("norm", "normalised"), [(1.0009, True), (1.002, False)])
def test_normalised_says_whether_every_norm_is_one(norm, normalised):
    values = X.astype(np.float64) / np.linalg.norm(X.astype(np.float64), axis=1, keepdims=True)
    values[-1] *= norm
    values[0] = 0
    vectors = load_vectors(ArraySource(values), items())
    assert (vectors.normalised, vectors.rescaled) == (normalised, not normalised)


def test_items_that_a_live_model_failed_on_are_failures():
    outputs = Outputs(
        model="m",
        content="embeddings",
        source="models.m.model",
        ids=pl.Series(["a", "c"]),
        values=np.array([[3, 4], [0, 2]], np.float32),
        requested=np.array(["a", "b", "c"], dtype=object),
        failed={"b": "model"},
    )
    vectors = load_vectors(outputs, items(["a", "b", "c"]), max_unmatched=0.0)
    assert vectors.unmatched == 0
    assert (vectors.normalised, vectors.rescaled) == (False, False)


def test_names_of_classes_that_repeat_do_not_matter_where_rows_are_vectors():
    values = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    outputs = Outputs(
        model="m",
        content="probabilities",
        source="models.m.model",
        ids=pl.Series(["a", "b"]),
        values=values,
        # Two classes of ImageNet: a bird, and a machine.
        names=("crane", "lemon", "crane"),
        requested=np.array(["a", "b"], dtype=object),
    )
    np.testing.assert_array_equal(load_vectors(outputs, items(["a", "b"])).take([0, 1]), values)


def as_store(path):
    pq.write_table(pa.table({"image_id": shuffled_ids(), "embedding": [*X[ORDER]]}), path / "x.pq")
    return ArraySource(path / "x.pq", column="embedding"), "image_id"


def as_dictionary(path):
    ids = pa.array(shuffled_ids()).dictionary_encode()
    pq.write_table(pa.table({"key": ids, "embedding": [*X[ORDER]]}), path / "x.pq")
    return ArraySource(path / "x.pq"), "key"


def as_csv(path):
    columns = {f"d{place}": X[ORDER, place] for place in range(D)}
    frame = pl.DataFrame({"what": shuffled_ids(), **columns})
    frame.cast(dict.fromkeys(columns, pl.Float64)).write_csv(path / "x.csv")
    return ArraySource(path / "x.csv"), "what"


def as_frame(path):
    return ArraySource(pl.DataFrame({"picture": shuffled_ids(), "e": [*X[ORDER]]})), "picture"


def as_npz(path):
    np.savez(path / "x.npz", emb=X[ORDER], names=np.array(shuffled_ids()), other=np.ones(N))
    return ArraySource(path / "x.npz"), "names"


@pytest.mark.parametrize("write", [as_store, as_dictionary, as_csv, as_frame, as_npz])
def test_rows_are_matched_by_a_column_that_has_the_ids_though_none_is_named(write, tmp_path):
    source, name = write(tmp_path)
    vectors = load_vectors(source, items())
    np.testing.assert_array_equal(vectors.take(range(N)), X)
    assert vectors.inputs[vectors.name]["matched_by"] == name
    named = replace(source, **{"ids" if write is as_npz else "id": name})
    again = load_vectors(named, items())
    assert "matched_by" not in again.inputs[again.name]


def test_whole_numbers_that_are_the_ids_match_rows_and_are_no_dimension(tmp_path):
    columns = {f"d{place}": X[ORDER, place].astype(np.float32) for place in range(D)}
    frame = pl.DataFrame({"image_id": ORDER, **columns})
    for extension in ("csv", "parquet"):
        path = tmp_path / f"x.{extension}"
        getattr(frame, f"write_{extension}")(path)
        vectors = load_vectors(ArraySource(path), items([*range(N)]))
        assert vectors.dimension == D
        np.testing.assert_allclose(vectors.take(range(N)), X.astype(np.float32))


@pytest.mark.parametrize("name", ["image_id", "text", "id", "File name", "sample ids"])
def test_a_column_named_as_ids_with_other_texts_is_refused(name, tmp_path):
    others = [f"{text}.jpg" for text in shuffled_ids()]
    pq.write_table(pa.table({name: others, "embedding": [*X[ORDER]]}), tmp_path / "x.pq")
    table = load_items(ItemSource(pl.DataFrame({"image": IDS}), "image"))
    with pytest.raises(DataError, match="has 0 of the 40 ids of items") as raised:
        load_vectors(ArraySource(tmp_path / "x.pq"), table)
    assert repr(name) in str(raised.value)
    assert "`id:`" in str(raised.value)


@pytest.mark.parametrize("odd", [None, IDS[1]])
def test_ids_with_a_gap_or_twice_are_not_passed_over(odd):
    table = pa.table({"image_id": [odd, *IDS[1:]], "embedding": [*X]})
    named = load_items(ItemSource(pl.DataFrame({"image": IDS}), "image"))
    with pytest.raises(
        DataError, match=r"'image_id' has 39 of the 40 ids of items .*, in 40 rows.*`id:`"
    ):
        load_vectors(ArraySource(table), named)


def test_a_table_without_rows_is_refused_as_one():
    table = pa.table({"key": pa.array([], pa.string()), "e": pa.array([], KINDS["fixed"])})
    with pytest.raises(DataError, match="every cell is empty"):
        load_vectors(ArraySource(table), items())


def test_an_array_named_as_ids_with_other_texts_is_refused(tmp_path):
    np.savez(tmp_path / "x.npz", emb=X, image_ids=np.array([f"{text}.jpg" for text in IDS]))
    with pytest.raises(DataError, match=r"array 'image_ids' has 0 of the 40 ids of .*`ids:`"):
        load_vectors(ArraySource(tmp_path / "x.npz"), items())


def test_two_columns_of_ids_in_different_orders_are_refused(tmp_path):
    table = pa.table({"left": IDS, "right": shuffled_ids(), "embedding": [*X]})
    with pytest.raises(DataError, match="'left', 'right'"):
        load_vectors(ArraySource(table), items())


def test_rows_follow_the_items_where_texts_describe_them():
    # Repeated texts are no ids: several images show a person.
    table = pa.table({"person_id": [text[:3] for text in IDS], "note": IDS[::-1], "e": [*X]})
    vectors = load_vectors(ArraySource(table), items([f"{text}!" for text in IDS]))
    np.testing.assert_array_equal(vectors.take(range(N)), X)


def test_ids_of_rows_that_take_no_part_are_known():
    frame = pl.DataFrame({"key": IDS, "part": ["test"] * 30 + ["train"] * 10})
    table = load_items(ItemSource(frame, "key", where={"part": Where(("test",))}))
    vectors = load_vectors(ArraySource(pa.table({"n": shuffled_ids(), "e": [*X[ORDER]]})), table)
    np.testing.assert_array_equal(vectors.take(range(30)), X[:30])
