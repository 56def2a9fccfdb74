"""Tables as tools write them: nested JSON, lists without a header, and every declared step."""

import http.server
import json
import threading

import fsspec
import numpy as np
import polars as pl
import pytest

from equipoise.config.fields import TableConfig
from equipoise.core import DataError, EquipoiseError
from equipoise.data.tables import open_table, read_table


def recipe(path, **steps):
    return TableConfig.model_validate({"file": path, **steps}).recipe(path.parent)


def write(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def cells(source, *names, **csv):
    texts = read_table(source, texts=names, **csv).texts
    return [texts[name].to_list() for name in names]


NESTED = [
    {"id": 1, "doc": {"gender": "f", "who": {"age": 30}}, "resps": [["A"]], "flat": ["A"]},
    {"id": 2, "doc": {"who": {}}, "resps": [["B"]], "flat": ["B"]},
    {"id": 3, "doc": None, "resps": [], "flat": []},
]
NESTED_CELLS = [["1", "2", "3"], ["f", None, None], ["30", None, None], ["A", "B", None]]
COLUMNS = ("id", "doc.gender", "doc.who.age", "flat.0")


@pytest.mark.parametrize("name", ["t.jsonl", "t.json"])
def test_nested_cells_have_dotted_names(tmp_path, name):
    text = "\n".join(map(json.dumps, NESTED)) if name == "t.jsonl" else json.dumps(NESTED)
    path = write(tmp_path, text, name)
    assert cells(path, *COLUMNS) == NESTED_CELLS
    assert cells(path, "resps.0.0") == [["A", "B", None]]


def test_members_of_parquet_structs_have_dotted_names(tmp_path):
    rows = [{"id": "1", "doc": {"gender": "f"}}, {"id": "2", "doc": None}]
    pl.DataFrame(rows).write_parquet(tmp_path / "t.parquet")
    assert cells(tmp_path / "t.parquet", "id", "doc.gender") == [["1", "2"], ["f", None]]


def test_a_key_with_a_dot_is_its_own_column(tmp_path):
    path = write(tmp_path, json.dumps([{"a.b": "key", "a": {"b": "path"}}]), "t.json")
    assert cells(path, "a.b") == [["key"]]


def test_a_path_through_a_plain_value_names_the_row(tmp_path):
    path = write(tmp_path, '{"doc": {"gender": "f"}}\n{"doc": "text"}', "t.jsonl")
    with pytest.raises(DataError) as error:
        cells(path, "doc.gender")
    assert (error.value.column, error.value.row) == ("doc.gender", 2)


FORMS = {
    "records by key": ({"a": {"x": 1}, "b": {"x": 2}}, {}, ["1", "2"]),
    "columns by row, as pandas writes them": ({"x": {"0": 1, "1": 2}}, {}, ["1", "2"]),
    "columns": ({"x": [1, 2], "y": [3, 4]}, {}, ["1", "2"]),
    "the only list": ({"version": "2", "rows": [{"x": 1}, {"x": 2}]}, {}, ["1", "2"]),
    "a list at a path": (
        {"data": {"a": [{"x": 1}], "b": [{"x": 2}]}}, {"records": "data.b"}, ["2"],
    ),
    "records by key at a path": ({"rows": {"k": {"x": 1}}, "n": {}}, {"records": "rows"}, ["1"]),
    "lists with a header": ([[1, "a"], [2, "b"]], {"header": ["x", "y"]}, ["1", "2"]),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_json_of_any_form_is_a_table(tmp_path, form):
    value, steps, expected = FORMS[form]
    path = write(tmp_path, json.dumps(value), "t.json")
    assert cells(recipe(path, **steps), "x") == [expected]


def test_keys_of_records_are_a_column(tmp_path):
    path = write(tmp_path, json.dumps({"a.mp4": {"x": 1}, "b.mp4": {"x": 2}}), "t.json")
    assert cells(path, "record key") == [["a.mp4", "b.mp4"]]


def test_several_lists_are_named_in_the_error(tmp_path):
    path = write(tmp_path, json.dumps({"a": [{"x": 1}], "b": [{"x": 2}]}), "t.json")
    with pytest.raises(DataError) as error:
        open_table(path)
    assert "records: a" in error.value.fix
    assert "records" in error.value.fix
    with pytest.raises(DataError, match="'a', 'b'"):
        open_table(recipe(path, records="c"))


@pytest.mark.parametrize(
    "start", ["sep=;\r\n", "\ufeffsep=;\n", '"sep=;"\n', "SEP=;\n"], ids=range(4)
)
def test_the_line_of_excel_names_the_delimiter(tmp_path, start):
    path = write(tmp_path, f"{start}id;x,y\n1;a\n2;b\n")
    assert cells(path, "id", "x,y") == [["1", "2"], ["a", "b"]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "a.jpg,f\nb.jpg,m\n"),
        ("t.txt", "a.jpg f\nb.jpg m\n"),
        ("t.lst", "a.jpg\tf\nb.jpg\tm"),
    ],
)
def test_a_list_without_a_header_takes_one(tmp_path, name, text):
    path = write(tmp_path, text, name)
    expected = [["a.jpg", "b.jpg"], ["f", "m"]]
    assert cells(recipe(path, header=["file", "gender"]), "file", "gender") == expected
    with pytest.raises(DataError) as error:
        open_table(recipe(path, header=["file"] * 1 + ["gender", "race"]))
    assert (error.value.file, error.value.row) == (str(path), 1)
    assert error.value.expected.startswith("3 cells")


QUERIES = ["a photo of a doctor", "a nurse; or two | a \t doctor", "  a person", "one"]


@pytest.mark.parametrize("name", ["q.txt", "q.lst", "q.csv", "q.tsv"])
def test_a_list_of_one_column_has_a_cell_a_line(tmp_path, name):
    queries = [query.replace("\t", "") for query in QUERIES] if name == "q.tsv" else QUERIES
    path = write(tmp_path, "\r\n".join([*queries, ""]), name)
    assert cells(recipe(path, header=["prompt"]), "prompt") == [queries]


def test_lines_of_a_list_keep_commas_and_quotes(tmp_path):
    path = write(tmp_path, '"men", he wrote\n\n12" wheels\n', "q.txt")
    assert cells(recipe(path, header=["prompt"]), "prompt") == [['"men", he wrote', '12" wheels']]


def test_a_csv_of_one_column_quotes_its_commas(tmp_path):
    path = write(tmp_path, '"a doctor, at work"\na nurse\n', "q.csv")
    assert cells(recipe(path, header=["prompt"]), "prompt") == [["a doctor, at work", "a nurse"]]
    with pytest.raises(DataError, match="has 2 cells") as error:
        open_table(recipe(write(tmp_path, "a doctor, at work\n", "r.csv"), header=["prompt"]))
    assert "quote a cell" in error.value.fix


@pytest.mark.parametrize(
    ("mark", "options"),
    [(";", {"delimiter": ";"}), ("\t", {"delimiter": "\t"}), (";", {}), ("|", {})],
)
def test_cells_of_a_list_may_hold_other_delimiters(tmp_path, mark, options):
    lines = [f"a doctor, a nurse, a cook{mark}job\n", f"a person{mark}person\n"]
    path = write(tmp_path, "".join(lines), "q.txt")
    table = open_table(recipe(path, header=["prompt", "topic"]), **options)
    assert pl.Series(table.read(("topic",))["topic"]).to_list() == ["job", "person"]


def test_a_named_delimiter_is_the_only_one_of_a_list(tmp_path):
    path = write(tmp_path, "two words\n", "q.txt")
    with pytest.raises(DataError, match="has 1 cell"):
        open_table(recipe(path, header=["prompt", "topic"]), delimiter=";")


@pytest.mark.parametrize("name", ["q.txt", "q.lst"])
def test_the_error_of_a_list_names_the_header(tmp_path, name):
    with pytest.raises(DataError, match="names no known format") as error:
        open_table(write(tmp_path, "a photo of a doctor\n", name))
    assert "header: [NAME]" in error.value.fix


def test_decimal_commas_are_points_in_columns_of_numbers(tmp_path):
    path = write(tmp_path, "id;p;text\n1;0,5;1,5 kg\n2;;2\n3;-1,25;x\n")
    source = recipe(path, decimal=",")
    assert cells(source, "p", "text") == [["0.5", "", "-1.25"], ["1,5 kg", "2", "x"]]
    assert read_table(source, texts=[], numbers=["p"]).numbers["p"].to_list() == [0.5, None, -1.25]
    with pytest.raises(DataError):
        read_table(path, texts=[], numbers=["p"])


NAMES = "{age}_{gender}_{race}_{}"


def test_names_of_files_hold_columns(tmp_path):
    path = write(tmp_path, "image\nfaces/61_1_20_2017.jpg.chip.jpg\nfaces/8_0_3_2016_b.jpg\n")
    source = recipe(path, from_name={"image": NAMES})
    assert cells(source, "age", "gender", "race") == [["61", "8"], ["1", "0"], ["20", "3"]]
    assert open_table(source).names == ("image", "age", "gender", "race")


def test_a_folder_is_a_table_of_its_files(tmp_path):
    for name in ("b/1_f.jpg", "a/2_m.jpg", ".hidden/3_f.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    section = {"folder": tmp_path, "from_name": "{age}_{gender}.jpg"}
    source = TableConfig.model_validate(section).recipe(tmp_path)
    assert cells(source, "file", "age", "gender") == [
        ["a/2_m.jpg", "b/1_f.jpg"], ["2", "1"], ["m", "f"],
    ]  # fmt: skip
    section = {"folder": tmp_path, "from_name": "{place}/{age}_{gender}.jpg"}
    source = TableConfig.model_validate(section).recipe(tmp_path)
    assert cells(source, "place") == [["a", "b"]]


def test_names_that_do_not_fit_are_counted_or_take_another_pattern(tmp_path):
    path = write(tmp_path, "image\n1_f_2.jpg\nportrait.jpg\n1_f_2.jpg\nother.jpg\n")
    with pytest.raises(DataError) as error:
        cells(recipe(path, from_name={"image": "{age}_{gender}_{}"}), "age")
    assert "2 of 3 names" in error.value.problem
    assert "portrait.jpg" in error.value.problem
    assert (error.value.column, error.value.row) == ("image", 2)
    source = recipe(path, from_name={"image": ["{age}_{gender}_{}", "{}"]})
    assert cells(source, "age") == [["1", None, "1", None]]


def test_codes_have_values_and_missing_ones_none(tmp_path):
    path = write(tmp_path, "id,gender,age\n1,0,30\n2,1,-1\n3,9,unknown\n4,,40\n")
    steps = {"values": {"gender": {0: "male", 1: "female", 9: None}}}
    source = recipe(path, missing={"age": ["-1", "unknown"]}, **steps)
    assert cells(source, "gender", "age") == [
        ["male", "female", None, ""], ["30", None, None, "40"],
    ]  # fmt: skip
    steps["values"]["gender"].pop(9)
    with pytest.raises(DataError) as error:
        cells(recipe(path, **steps), "gender")
    assert (error.value.column, error.value.row) == ("gender", 3)


def test_bands_of_numbers_are_a_column_of_their_own(tmp_path):
    path = write(tmp_path, "id,age,score\n1,17,0.1\n2,18,0.5\n3,64,0.25\n4,65,0.9\n5,N/A,\n")
    source = recipe(path, bands={"age": [0, 18, 40, 65], "score": [0.25, 0.5]})
    assert cells(source, "age", "age band", "score band") == [
        ["17", "18", "64", "65", "N/A"],
        ["0–17", "18–39", "40–64", "65 and over", None],
        ["under 0.25", "0.5 and over", "0.25 to under 0.5", "0.5 and over", None],
    ]
    wrong = write(tmp_path, "id,age\n1,17\n2,old\n", "wrong.csv")
    with pytest.raises(DataError) as error:
        cells(recipe(wrong, bands={"age": [18]}), "age band")
    assert (error.value.column, error.value.row) == ("age", 2)


LISTS = {
    "separator": ("a|b,x\nb,y\n,z\n", "|"),
    "Python": ("\"['a', 'b']\",x\n\"['b']\",y\n,z\n", "[]"),
    "JSON": ('"[""a"", ""b""]",x\n"[""b""]",y\n[],z\n', "[]"),
}


@pytest.mark.parametrize("form", LISTS)
def test_several_values_a_cell_are_columns_of_true_and_false(tmp_path, form):
    rows, separator = LISTS[form]
    source = recipe(write(tmp_path, f"tags,id\n{rows}"), split={"tags": separator})
    assert open_table(source).names == ("id", "tags: a", "tags: b")
    assert cells(source, "tags: a", "tags: b") == [["true", "false", None], ["true", "true", None]]


def test_lists_of_json_are_split_too(tmp_path):
    rows = [{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": ["b"]}, {"id": 3}]
    path = write(tmp_path, json.dumps(rows), "t.json")
    assert cells(recipe(path, split={"tags": "[]"}), "tags: a") == [["true", "false", None]]


@pytest.mark.parametrize(("cell", "separator"), [("a|", "|"), ("a||b", "|"), ("a", "[]")])
def test_a_split_that_leaves_an_empty_value_names_the_row(tmp_path, cell, separator):
    good = "a|b" if separator == "|" else "['a']"
    path = write(tmp_path, f"id,tags\n1,{good}\n2,{cell}\n")
    with pytest.raises(DataError) as error:
        open_table(recipe(path, split={"tags": separator}))
    assert (error.value.column, error.value.row) == ("tags", 2)


CONFUSION = {
    "TP": {"label": "1", "pred": "1"}, "FN": {"label": "1", "pred": "0"},
}  # fmt: skip


def test_counts_stand_for_rows(tmp_path):
    path = write(tmp_path, "g,n,TP,FN\na,2,1,0\nb,0,0,2\nc,1,3,1\n")
    assert cells(recipe(path, count="n"), "g", "row number") == [
        ["a", "a", "c"], ["1", "2", "3"],
    ]  # fmt: skip
    names = ("g", "label", "pred")
    rows = sorted(zip(*cells(recipe(path, count=CONFUSION), *names), strict=True))
    assert rows == sorted(
        [("a", "1", "1"), *[("b", "1", "0")] * 2, *[("c", "1", "1")] * 3, ("c", "1", "0")]
    )
    # Values of codes, bands and names come before: rows that were counted are as any others.
    source = recipe(path, values={"g": {"a": "A", "b": "B", "c": "C"}}, count="n")
    assert cells(source, "g") == [["A", "A", "C"]]


@pytest.mark.parametrize("number", ["-1", "1.5", "x", "", "1e30"])
def test_a_cell_that_is_no_count_names_the_row(tmp_path, number):
    path = write(tmp_path, f"g,n\na,1\nb,{number}\n")
    with pytest.raises(DataError) as error:
        open_table(recipe(path, count="n"))
    assert (error.value.column, error.value.row) == ("n", 2)


def test_counts_of_nothing_are_refused(tmp_path):
    with pytest.raises(DataError, match="0 rows"):
        open_table(recipe(write(tmp_path, "g,n\na,0\n"), count="n"))


WRONG = {
    "bands that overlap": {"bands": {"age": [0, 40, 18]}},
    "a pattern without a name": {"from_name": {"id": "name"}},
    "a pattern with a name twice": {"from_name": {"id": "{a}_{a}"}},
    "a file and a folder": {"folder": "x"},
    "an unknown step": {"bans": {}},
}


@pytest.mark.parametrize("steps", WRONG.values(), ids=WRONG)
def test_steps_that_contradict_themselves_are_refused_before_reading(tmp_path, steps):
    with pytest.raises(ValueError, match=r"expected|Allowed"):
        TableConfig.model_validate({"file": tmp_path / "t.csv", **steps})


@pytest.mark.parametrize(
    "steps",
    [
        {"values": {"no": {0: "a"}}}, {"missing": {"no": ["x"]}}, {"bands": {"no": [1]}},
        {"split": {"no": "|"}}, {"count": "no"}, {"from_name": {"no": "{x}_{}"}},
    ],
    ids=lambda steps: next(iter(steps)),
)  # fmt: skip
def test_a_step_of_a_column_that_is_not_there_names_it(tmp_path, steps):
    source = recipe(write(tmp_path, "id,g\n1,a\n"), **steps)
    with pytest.raises(DataError) as error:
        cells(source, "x" if "from_name" in steps else "id")
    assert error.value.column == "no"


def test_a_column_of_a_name_is_not_replaced_in_silence(tmp_path):
    path = write(tmp_path, "id,age\n30_a,31\n")
    with pytest.raises(DataError) as error:
        open_table(recipe(path, from_name={"id": "{age}_{}"}))
    assert error.value.column == "age"


def test_steps_leave_vectors_and_the_digest_of_the_file_alone(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pl.DataFrame({"g": ["a", "b"], "v": [[0.5, 1.0], [2.0, 3.0]], "n": [1, 2]})
    frame.write_parquet(path)
    plain, stepped = open_table(path), open_table(recipe(path, values={"g": {"a": "A", "b": "B"}}))
    assert stepped.digest == plain.digest
    np.testing.assert_array_equal(stepped.vectors("v")[0], plain.vectors("v")[0])
    counted = open_table(recipe(path, count="n")).vectors("v")[0]
    np.testing.assert_array_equal(counted, [[0.5, 1.0], [2.0, 3.0], [2.0, 3.0]])


class Files(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = self.path.partition("?")[0] == "/t.csv"
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(b"id,g\n1,a\n" if found else b"")

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = http.server.HTTPServer(("127.0.0.1", 0), Files)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_table_on_a_web_server_is_read(server, tmp_path):
    section = TableConfig.model_validate({"file": f"{server}/t.csv?key=secret"})
    table = read_table(section.recipe(tmp_path), texts=["g"])
    assert table.texts["g"].to_list() == ["a"]
    # A signature reaches neither a report nor an error.
    assert table.name == f"{server}/t.csv"
    with pytest.raises(DataError, match="404") as error:
        read_table(f"{server}/other.csv?key=secret", texts=["g"])
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.json"])
def test_a_table_in_object_storage_is_read(name):
    frame, writer = pl.DataFrame({"g": ["a", "b"]}), name.rpartition(".")[2]
    with fsspec.open(f"memory://tables/{name}", "wb") as file:
        getattr(frame, f"write_{writer}")(file)
    assert cells(f"memory://tables/{name}", "g") == [["a", "b"]]


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("memory://tables/none.csv", "doesn't exist"),
        ("nowhere://rows.csv", "nowhere"),
        ("https://me:word@example.org/t.csv", "password"),
        ("http://127.0.0.1:9/t.csv", "reached"),
    ],
)
def test_an_address_that_cannot_be_read_is_one_error(address, named):
    with pytest.raises(EquipoiseError, match=named) as error:
        open_table(address)
    assert "word@" not in str(error.value)


def test_the_package_of_a_scheme_is_named(monkeypatch):

    def missing(*_, **__):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec, "open", missing)
    with pytest.raises(DataError) as error:
        open_table("s3://bucket/t.csv")
    assert "s3fs" in error.value.problem
    assert "pip install s3fs" in error.value.fix
