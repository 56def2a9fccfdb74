"""Labels of data mapped to classes of models, and two mappings compared."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.data import (
    ClassMapping,
    ImageSet,
    compare_mappings,
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
        ("wide.json", '{"phones": ["telephone", "cellphone"], "bikes": "bicycle", '
         '"calls": ["telephone"]}'),
        ("wide.yaml", "phones: [telephone, cellphone]\nbikes: bicycle\ncalls:\n  - telephone\n"),
    ],
)  # fmt: skip
def test_every_format_reads_the_same(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    assert read_class_mapping(tmp_path / name) == MAPPING


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
