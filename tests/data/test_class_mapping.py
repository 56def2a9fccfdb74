"""Labels of data mapped to classes of models, and two mappings compared."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core import InputError
from equipoise.data import (
    ClassMapping,
    ImageSet,
    compare_mappings,
    lexicon,
    read_class_mapping,
    read_plain,
)

MAPPING = ClassMapping.of(
    "wide", {"phones": ["telephone", "cellphone"], "bikes": "bicycle", "calls": ["telephone"]}
)
Found = frozenset[tuple[str, str]]
LABEL = st.sampled_from(["a", "b", "c", "d"])
PAIRS = st.frozensets(st.tuples(LABEL, st.sampled_from(["x", "y", "z"])))


def images(*rows: tuple[str, str | None]) -> ImageSet:
    frame = pl.DataFrame([*rows], schema=["id", "label"], orient="row")
    return read_plain(frame, id="id", label="label")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("wide.csv", "class,label\ntelephone,phones\ncellphone,phones\nbicycle,bikes\n"
         "telephone,calls\ntelephone, phones \n"),
        ("wide.tsv", "label\tclass\nphones\ttelephone\nphones\tcellphone\nbikes\tbicycle\n"
         "calls\ttelephone\n"),
        ("wide.json", '{"phones": ["telephone", "cellphone"], "bikes": "bicycle", '
         '"calls": ["telephone"]}'),
        ("wide.yaml", "phones: [telephone, cellphone]\nbikes: bicycle\ncalls:\n  - telephone\n"),
    ],
)  # fmt: skip
def test_every_format_reads_the_same(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    assert read_class_mapping(tmp_path / name) == MAPPING


def test_texts_of_yaml_stay_texts(tmp_path: Path) -> None:
    (tmp_path / "m.yml").write_text("no: [yes, 010, 1.0, null]\n2024-01-01: x\n")
    mapping = read_class_mapping(tmp_path / "m.yml", name="odd")
    assert mapping.name == "odd"
    assert mapping.by_label == {"no": ("010", "1.0", "null", "yes"), "2024-01-01": ("x",)}


def test_columns_of_a_table_can_have_other_names(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("topic,imagenet\nphones,cellphone\n")
    mapping = read_class_mapping(tmp_path / "m.csv", columns=("topic", "imagenet"))
    assert mapping.by_label == {"phones": ("cellphone",)}


def test_a_mapping_reads_both_ways() -> None:
    assert MAPPING.by_label["phones"] == ("cellphone", "telephone")
    assert MAPPING.by_class == {
        "bicycle": ("bikes",), "cellphone": ("phones",), "telephone": ("calls", "phones"),
    }  # fmt: skip


def test_labels_become_classes() -> None:
    found = images(("1", "phones"), ("1", "calls"), ("2", "bikes"), ("3", "roof"), ("4", None))
    mapped = found.apply(MAPPING)
    assert mapped.label_table().rows() == [
        ("1", "cellphone"), ("1", "telephone"), ("2", "bicycle"),
    ]  # fmt: skip
    step = mapped.steps[-1]
    assert step.counts == {
        "labels": 4, "labels_without_class": 1, "labels_without_class_examples": ["roof"],
        "classes": 3, "classes_without_images": 0, "images_without_class": 2,
    }  # fmt: skip
    assert step.description == (
        "labels are the classes of the mapping 'wide' (bikes: bicycle; calls: telephone; phones: "
        "cellphone, telephone)"
    )


def test_a_mapping_of_other_labels_is_an_error() -> None:
    message = "the mapping 'wide' has none of the labels of images (data frame), such as 'roof'"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        images(("1", "roof")).apply(MAPPING)


def test_the_mappings_of_the_source_compare() -> None:
    examples = lexicon("hall_2023").content["class_mapping_examples"]
    narrow, wide = (
        ClassMapping.of(name, {label: classes[name] for label, classes in examples.items()})
        for name in ("imagenet1k", "imagenet22k")
    )
    found = compare_mappings(wide, narrow)
    assert found.counts == {"same": 0, "changed": 5, "only_first": 0, "only_second": 0}
    assert found.changed["parking lots"] == (("garage",), ("parking meter",))


@given(PAIRS, PAIRS)
def test_comparing_accounts_for_every_pair(
    a: frozenset[tuple[str, str]], b: frozenset[tuple[str, str]]
) -> None:
    first, second = ClassMapping("a", a), ClassMapping("b", b)
    found = compare_mappings(first, second)
    assert sum(found.counts.values()) == len({label for label, _ in a | b})
    only = {(label, one) for label, ones in found.changed.items() for one in ones[0]}
    whole = {(label, one) for label, one in a if label in found.only_first}
    assert only | whole == a - b
    back = compare_mappings(second, first)
    assert (back.only_first, back.only_second) == (found.only_second, found.only_first)
    assert {label: ones[::-1] for label, ones in back.changed.items()} == found.changed


@given(PAIRS.filter(bool))
def test_a_mapping_survives_its_file(pairs: Found) -> None:
    mapping = ClassMapping("m", pairs)
    assert ClassMapping.of("m", json.loads(json.dumps(mapping.by_label))) == mapping
