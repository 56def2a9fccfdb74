"""Inputs that people have: vectors of words, lists of results, parts, filters, mappings, bands."""

import json

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.core import ConfigError, DataError, Groups, InputError
from equipoise.data import ArraySource, ItemSource, find_format, load_items, load_vectors

WORDS = ["he", "she", "New York", "nurse"]
VECTORS = np.random.default_rng(0).normal(size=(4, 5)).round(4).astype(np.float32)
LINES = [
    " ".join([word, *map(str, row)]) for word, row in zip(WORDS, VECTORS.tolist(), strict=True)
]
OTHERS = [f"word{n} {' '.join('0.5' for _ in range(5))}" for n in range(50)]
TEXTS = {
    "glove.txt": "\n".join([*OTHERS, *LINES, ""]),
    "word2vec.vec": "\n".join(["54 5", *(f"{line} " for line in [*LINES, *OTHERS]), ""]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_vectors_of_words_are_read_from_text(tmp_path, name):
    (tmp_path / name).write_text(TEXTS[name])
    items = load_items(ItemSource(pl.DataFrame({"word": WORDS[::-1]}), "word"))
    vectors = load_vectors(ArraySource(tmp_path / name), items)
    np.testing.assert_array_equal(vectors.take(np.arange(4)), VECTORS[::-1])


def test_words_without_a_vector_are_counted_up_to_a_declared_share(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text(TEXTS["glove.txt"])
    source = ArraySource(path)
    items = load_items(ItemSource(pl.DataFrame({"word": [*WORDS, "doctress"]}), "word"))
    vectors = load_vectors(source, items, max_unmatched=0.2)
    assert vectors.counts["items_without_row"] == 1
    with pytest.raises(DataError) as raised:
        load_vectors(source, items, max_unmatched=0.1)
    assert "doctress" in raised.value.problem
    path.write_text(f"{LINES[0]}\n{LINES[1]} 0.5\n")
    with pytest.raises(DataError) as raised:
        load_vectors(source, load_items(ItemSource(pl.DataFrame({"word": ["nurse"]}), "word")))
    assert "words" in raised.value.problem


N = 600
IDS = [f"i{k:03d}" for k in range(N)]
RNG = np.random.default_rng(1)
PEOPLE = pl.DataFrame({
    "id": IDS, "sex": RNG.choice(["f", "m"], N), "year": RNG.choice(["2019", "2020"], N),
    "half": RNG.choice(["left", "right"], N),
    "kind": RNG.choice(["cat", "dog"], N), "said": RNG.choice(["cat", "dog"], N),
})  # fmt: skip


def run(data, model=None, base=None, **sections):
    values = {
        "audit": "predictions", "data": {"target": "kind", "groups": ["sex"]} | data,
        "models": {"m": model or {"table": PEOPLE, "prediction": "said"}},
        "resampling": {"method": "none"},
    } | sections  # fmt: skip
    return audits.run(audits.parse_config(values), **({} if base is None else {"base": base}))


def accuracy(result):
    return next(
        finding
        for finding in result.findings
        if finding.metric == "accuracy" and not finding.groups
    )


@pytest.mark.parametrize(
    "where",
    [{"year": "2020"}, {"year": {"min": 2020}}, {"year": ["2020", "2021"], "sex": ["f", "m"]}],
)
def test_rows_that_do_not_fit_take_no_part_with_rules_and_without(where):
    recent = PEOPLE.filter(pl.col("year") == "2020")
    expected = (recent["kind"] == recent["said"]).mean()
    plain = run({"table": PEOPLE, "id": "id", "where": where})
    assert accuracy(plain).value == pytest.approx(expected)
    assert accuracy(plain).n == len(recent)
    rule = {"rule": "value_groups", "attribute": "who", "column": "sex",
            "groups": {"women": "f", "men": "m"}}  # fmt: skip
    images = {"table": PEOPLE, "id": "id", "rules": [rule], "where": where}
    grouped = run({"images": images, "groups": ["who"]})
    assert accuracy(grouped).value == accuracy(plain).value
    values = {"where": {**where, "who": "women"}}
    women = run({"images": images | values, "groups": ["half"]})
    assert accuracy(women).n == int((recent["sex"] == "f").sum())


def test_vectors_without_ids_follow_the_rows_that_stay():
    vectors = RNG.normal(size=(N, 4))

    def diversity(table, file, **more):
        images = {"table": table, "id": "id", **more}
        values = {"audit": "diversity", "data": {"images": images, "sets": ["sex"]},
                  "models": {"m": {"file": file}}, "resampling": {"method": "none"}}  # fmt: skip
        return audits.run(audits.parse_config(values)).findings

    recent = (PEOPLE["year"] == "2020").to_numpy()
    assert repr(diversity(PEOPLE, vectors, where={"year": "2020"})) == repr(
        diversity(PEOPLE.filter(recent), vectors[recent])
    )


def test_a_filter_that_fits_nothing_is_refused():
    with pytest.raises(DataError) as raised:
        run({"table": PEOPLE, "id": "id", "where": {"year": "1999"}})
    assert "year" in raised.value.problem
    with pytest.raises(DataError) as raised:
        run({"table": PEOPLE, "id": "id", "where": {"sex": {"min": 3}}})
    assert raised.value.column == "sex"


def test_rows_of_two_tables_need_an_id_and_rows_of_one_do_not():
    table = PEOPLE.drop("id")
    result = run({"table": table}, {"table": table, "prediction": "said"})
    assert accuracy(result).value == accuracy(run({"table": PEOPLE, "id": "id"})).value
    with pytest.raises(ConfigError, match="data.id"):
        run({"table": table}, {"table": table.clone(), "prediction": "said"})


def test_a_list_of_json_objects_is_a_table(tmp_path):
    rows = [{"image_id": k, "caption": caption} for k, caption in enumerate(PEOPLE["said"])]
    (tmp_path / "results.json").write_text(json.dumps(rows))
    images = PEOPLE.with_columns(id=pl.int_range(pl.len()))
    model = {"table": "results.json", "id": "image_id", "prediction": "caption"}
    result = run({"table": images, "id": "id"}, model, base=tmp_path)
    assert accuracy(result).value == (PEOPLE["kind"] == PEOPLE["said"]).mean()
    (tmp_path / "results.json").write_text('{"a": 1}')
    with pytest.raises(DataError) as raised:
        run({"table": images, "id": "id"}, model, base=tmp_path)
    assert raised.value.file.endswith("results.json")


def captions(first, last):
    images = [{"id": k, "file_name": f"{k}.jpg"} for k in range(first, last)]
    texts = [{"id": k, "image_id": k, "caption": f"image {k}"} for k in range(first, last)]
    return json.dumps({"images": images, "annotations": texts})


def test_parts_of_a_data_set_are_one(tmp_path):
    paths = [tmp_path / "train.json", tmp_path / "val.json"]
    for path, part in zip(paths, ((0, 5), (5, 8)), strict=True):
        path.write_text(captions(*part))
    coco = find_format("coco")
    dataset = coco.load({"captions": paths})
    assert sorted(map(int, dataset.ids)) == [*range(8)]
    assert len(dataset.captions) == 8
    assert {*dataset.inputs} == {*map(str, paths)}
    with pytest.raises(InputError, match="overlap"):
        coco.load({"captions": [paths[0], paths[0]]})
    with pytest.raises(InputError, match="as many"):
        coco.load({"captions": paths, "instances": paths[:1]})


def test_a_mapping_in_a_file_lets_a_label_stand_for_several_classes(tmp_path):
    rows = [("cat", "feline"), ("dog", "canine"), ("cat", "pet"), ("dog", "pet")]
    pl.DataFrame(rows, ["label", "class"], orient="row").write_csv(tmp_path / "map.csv")
    predictions = PEOPLE.with_columns(said=pl.lit("pet"))
    predictions.write_csv(tmp_path / "m.csv")
    PEOPLE.write_csv(tmp_path / "images.csv")
    model = "{table: m.csv, prediction: said, map: map.csv}"
    data = "{table: images.csv, id: id, target: kind, groups: [sex]}"
    path = tmp_path / "audit.yaml"
    path.write_text(f"audit: predictions\ndata: {data}\nmodels: {{m: {model}}}\n")
    config = audits.load_config(path)
    result = audits.run(config, base=tmp_path)
    assert accuracy(result).value == 1.0
    written = config.resolved["models"]["m"]["map"]
    assert (written["pet"], written["feline"]) == (["cat", "dog"], "cat")
    assert audits.parse_config(config.resolved).resolved == config.resolved


@pytest.mark.parametrize(
    "names",
    [
        ("0-2", "3-9", "10-19", "60-69", "more than 70"),
        ("under 40", "40 and over"),
        ("<18", "18–64", "65+"),
        ("9", "10", "100"),
    ],
)
def test_bands_sort_in_their_order_and_other_names_by_the_alphabet(names):
    shuffled = [*names[::-1], *names]
    assert Groups.of({"age": shuffled}, min_size=1).levels == tuple((name,) for name in names)
    mixed = Groups.of({"age": [*shuffled, "unknown"]}, min_size=1).levels
    assert mixed == tuple((name,) for name in sorted([*names, "unknown"]))
