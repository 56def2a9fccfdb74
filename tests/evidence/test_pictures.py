import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.core import DataError
from equipoise.evidence import pictures_in_folder, pictures_of_table, pictures_on_disk


def files(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())


def test_a_folder_gives_its_pictures_by_their_path_inside(tmp_path):
    files(tmp_path, "b.JPG", "a/2.png", "a/10.webp", "notes.txt", ".hidden.png", "a/.cache/1.png")
    pictures = pictures_in_folder(tmp_path)
    assert pictures.ids.tolist() == ["a/10.webp", "a/2.png", "b.JPG"]
    assert [pictures.read(place) for place in range(3)] == [b"a/10.webp", b"a/2.png", b"b.JPG"]
    assert pictures.left_out == 3
    assert pictures.name == str(tmp_path)
    assert len(pictures) == 3


def test_a_name_that_is_no_utf_8_becomes_text(tmp_path):
    odd = os.fsencode(tmp_path) + b"/\xff.png"
    Path(os.fsdecode(odd)).write_bytes(b"odd")
    pictures = pictures_in_folder(tmp_path)
    assert pictures.ids.tolist() == ["\\xff.png"]
    assert pictures.read(0) == b"odd"


@pytest.mark.parametrize("names", [(), ("a.txt", "b.csv")])
def test_a_folder_without_pictures_is_refused(tmp_path, names):
    files(tmp_path, *names)
    with pytest.raises(DataError, match=f"no picture among {len(names)} files") as caught:
        pictures_in_folder(tmp_path)
    assert caught.value.file == str(tmp_path)


def test_a_table_gives_its_pictures_in_the_order_of_ids(tmp_path):
    files(tmp_path, "one.png", "sub/two.png")
    outside = tmp_path.parent / f"{tmp_path.name}-outside.png"
    outside.write_bytes(b"outside")
    pictures = pictures_of_table(
        ["c", "a", "b", "a2"],
        ["one.png", Path("sub/two.png"), str(outside), "one.png"],
        root=tmp_path,
        name="images.csv",
        crops=[[0, 0, 1, 1], [0, 0, 2, 2], [0, 0, 3, 3], [0, 0, 4, 4]],
    )
    assert pictures.ids.tolist() == ["a", "a2", "b", "c"]
    read = [pictures.read(place) for place in range(4)]
    assert read == [b"sub/two.png", b"one.png", b"outside", b"one.png"]
    assert pictures.crops[:, 2].tolist() == [2, 4, 3, 1]
    subset = pictures.take([3, 1])
    assert subset.ids.tolist() == ["c", "a2"]
    assert subset.read(0) == b"one.png"
    assert subset.crops[:, 2].tolist() == [1, 4]


@pytest.mark.parametrize(
    ("ids", "paths", "crops", "row"),
    [
        ([], [], None, None),
        (["a", ""], ["x", "y"], None, 2),
        (["a", "b"], ["x", ""], None, 2),
        (["b", "a", "b"], ["x", "y", "z"], None, None),
        (["a"], ["x"], [[1, 2, 3]], None),
        (["a", "b"], ["x", "y"], [[0, 0, 1, 1], [5, 0, 5, 9]], 2),
        (["a"], ["x"], [[-1, 0, 1, 1]], 1),
    ],
)
def test_a_table_that_is_unclear_is_refused(ids, paths, crops, row):
    with pytest.raises(DataError) as caught:
        pictures_of_table(ids, paths, root=Path(), name="t.csv", crops=crops)
    assert (caught.value.file, caught.value.row) == ("t.csv", row)


def test_a_pipe_among_the_pictures_is_not_waited_for(tmp_path):
    files(tmp_path, "a.png")
    os.mkfifo(tmp_path / "b.png")
    (tmp_path / "c.png").symlink_to("a.png")
    (tmp_path / "d.png").symlink_to("b.png")
    pictures = pictures_in_folder(tmp_path)
    assert pictures.ids.tolist() == ["a.png", "b.png", "c.png", "d.png"]
    assert pictures.read(0) == pictures.read(2) == b"a.png"
    for place in (1, 3):
        with pytest.raises(OSError, match="it isn't a regular file"):
            pictures.read(place)


def images(n, *, struct=True):
    if not struct:
        return pa.array([b"%d" % k for k in range(n)])
    return pa.array([{"bytes": b"%d" % k, "path": f"{k}.png"} for k in range(n)])


def test_parquet_with_images_is_read_row_group_by_row_group(tmp_path):
    for part, first in enumerate((0, 7)):
        table = pa.table({"image": images(20).slice(first, 7)})
        pq.write_table(table, tmp_path / f"train-{part}.parquet", row_group_size=3)
    pictures = pictures_on_disk(tmp_path)
    assert pictures.ids.tolist() == [f"{k:02d}" for k in range(14)]
    assert [pictures.read(place) for place in range(14)] == [b"%d" % k for k in range(14)]


def test_ids_of_a_column_are_text(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"pixels": images(3, struct=False), "key": [10, 9, 8]}), path)
    pictures = pictures_on_disk(path, image="pixels", id="key")
    assert pictures.ids.tolist() == ["10", "8", "9"]
    assert [pictures.read(place) for place in range(3)] == [b"0", b"2", b"1"]


def test_a_row_may_name_a_file_and_may_be_empty(tmp_path):
    (tmp_path / "x.png").write_bytes(b"beside")
    rows = [{"bytes": None, "path": "x.png"}, {"bytes": None, "path": None}, None]
    pq.write_table(pa.table({"image": rows}), tmp_path / "t.parquet")
    pictures = pictures_on_disk(tmp_path / "t.parquet")
    assert pictures.read(0) == b"beside"
    for place in (1, 2):
        with pytest.raises(OSError, match=r"^the row has no image$"):
            pictures.read(place)


def test_a_file_that_is_written_anew_is_read_anew(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"image": [b"old"]}), path)
    assert pictures_on_disk(path).read(0) == b"old"
    pq.write_table(pa.table({"image": [b"changed"]}), path)
    assert pictures_on_disk(path).read(0) == b"changed"


def test_other_files_are_refused_as_no_data_set(tmp_path):
    (tmp_path / "broken.parquet").write_text("no Parquet")
    pq.write_table(pa.table({"image": [1, 2]}), tmp_path / "number.parquet")
    pq.write_table(pa.table({"image": [b"1", b"2"], "name": ["a", "a"]}), tmp_path / "t.parquet")
    pq.write_table(pa.table({"image": pa.array([], pa.binary())}), tmp_path / "empty.parquet")
    cases = [
        ("none", {}, None),
        ("broken.parquet", {}, None),
        ("number.parquet", {}, "image"),
        ("t.parquet", {"image": "x"}, "x"),
        ("t.parquet", {"id": "y"}, "y"),
        ("t.parquet", {"id": "name"}, None),
        ("empty.parquet", {}, None),
    ]
    for name, options, column in cases:
        with pytest.raises(DataError) as caught:
            pictures_on_disk(tmp_path / name, **options)
        assert (caught.value.file, caught.value.column) == (str(tmp_path / name), column)


@pytest.mark.parametrize("path", ["../x.png", "a/../../x.png", ".."])
def test_a_path_out_of_the_root_is_refused(path, tmp_path):
    with pytest.raises(DataError) as raised:
        pictures_of_table(["a", "b"], ["x..png", path], root=tmp_path, name="t.csv", column="file")
    error = raised.value
    assert (error.file, error.column, error.row) == ("t.csv", "file", 2)
    inside = ["a/../x.png", "..x.png", str(tmp_path.parent / "x.png")]
    assert len(pictures_of_table(["a", "b", "c"], inside, root=tmp_path, name="t")) == 3
