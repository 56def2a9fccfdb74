"""What users bring: labels, scores and images in every shape, and what they are told."""

import numpy as np
import polars as pl
import pytest

from audits.concepts.worlds import CONCEPTS, frame, run, small, tables, values, with_data
from concept_worlds import world
from equipoise import audits
from equipoise.audits.concepts.data import ConceptData
from equipoise.core import DataError, Verdict


def data(**columns):
    return tables(*world(3, n=400), **columns)


def loaded(settings):
    concept_data = audits.prepare(audits.parse_config(settings, source="c")).data
    assert isinstance(concept_data, ConceptData)
    return concept_data


def differences(result):
    return {finding.subject: finding.value for finding in result.findings if not finding.group}


def put(frame, column, row, value):
    cells = frame[column].to_list()
    cells[row] = value
    return frame.with_columns(pl.Series(column, cells, strict=False))


def test_every_shape_of_labels_and_scores_gives_the_same_numbers(tmp_path):
    tables = data()
    plain = differences(run(values(tables)))
    scores = tables["scores"].reverse().select(CONCEPTS).to_numpy()
    np.save(tmp_path / "scores.npy", scores)
    tables["labels"].write_parquet(tmp_path / "labels.parquet")
    arrays = values(tables)
    arrays["models"] = {"m": {"file": tmp_path / "scores.npy", "names": list(CONCEPTS)}}
    arrays["data"]["labels"] = {"file": tmp_path / "labels.parquet"}
    assert differences(run(arrays)) == plain
    listed = tables["labels"].unpivot(index="image", variable_name="what").filter(value=1)
    assert differences(run(with_data(tables, labels={"file": listed, "concept": "what"}))) == plain


def test_several_columns_count_by_their_largest_and_labels_by_any():
    tables = data()
    other = tables["scores"].with_columns(cook=pl.col("chef") + 1.0)
    labels = tables["labels"].with_columns(cook=pl.col("nurse"))
    maps = {"map": {"chef": ["chef", "cook"]}, "maps": {"narrow": {"chef": "chef"}}}
    concept_data = loaded(
        values(tables | {"scores": other})
        | {"models": {"m": {"file": other} | maps}}
        | with_only_labels(tables, labels, maps)
    )
    place = concept_data.models["m"].concepts.index("chef")
    order = tables["scores"].reverse()
    assert (
        concept_data.models["m"].by_image(None)[:, place] == order["chef"].to_numpy() + 1.0
    ).all()
    assert (concept_data.models["m"].by_image("narrow")[:, place] == order["chef"].to_numpy()).all()
    label_rows = tables["labels"].reverse()
    wide = concept_data.labels.by_image(("chef",), None)[:, 0]
    assert (wide == ((label_rows["chef"] == 1) | (label_rows["nurse"] == 1)).to_numpy()).all()
    assert (
        concept_data.labels.by_image(("chef",), "narrow")[:, 0] == label_rows["chef"].to_numpy()
    ).all()


def test_mappings_of_labels_exchange_one_for_another_by_version():
    tables = data()
    labels = tables["labels"].rename({"chef": "cooks", "nurse": "carers"})
    maps = {"maps": {"kitchen": {"chef": "cooks"}, "ward": {"nurse": ["carers", "cooks"]}}}
    settings = with_only_labels(tables, labels, maps)
    mapped = values(tables) | settings | {
        "choices": {"map": "kitchen", "min_positives": 20},
        "versions": {"ward": {"map": "ward"}},
    }  # fmt: skip
    concept_data = loaded(mapped)
    assert concept_data.models["m"].concepts == ("guitar", "bicycle", "chef", "nurse")
    label_rows = tables["labels"].reverse()
    by_name = {
        name: concept_data.labels.by_image(("chef", "nurse"), name) for name in ("kitchen", "ward")
    }
    assert (by_name["kitchen"][:, 0] == (label_rows["chef"] == 1).to_numpy()).all()
    assert not by_name["kitchen"][:, 1].any()
    assert not by_name["ward"][:, 0].any()
    either = ((label_rows["chef"] == 1) | (label_rows["nurse"] == 1)).to_numpy()
    assert (by_name["ward"][:, 1] == either).all()
    groups = frame(run(mapped), "concept_groups").filter(reason="")
    assert {(row["version"], row["concept"]) for row in groups.to_dicts()} == {
        (version, concept)
        for version, concepts in (("baseline", ("chef",)), ("ward", ("nurse",)))
        for concept in (*concepts, "guitar", "bicycle")
    }
    # A column that there isn't is refused; a list says nothing of labels that no image has.
    maps["maps"]["ward"]["nurse"] = ["carer"]
    with pytest.raises(DataError) as error:
        loaded(mapped | with_only_labels(tables, labels, maps))
    assert error.value.column == "carer"
    listed = labels.unpivot(index="image", variable_name="what").filter(value=1)
    of_list = with_data(tables, labels={"file": listed, "concept": "what"} | maps)
    result = run(mapped | {"data": of_list["data"]})
    assert any("1 (carer)" in note for note in result.manifest.notes)


def with_only_labels(tables, labels, maps):
    return {"data": with_data(tables, labels={"file": labels} | maps)["data"]}


def changed(name, column, row, cell):
    tables = data(box=["0.1"] * 400)
    return values(tables | {name: put(tables[name], column, row, cell)})


def listed_elsewhere():
    listed = pl.DataFrame({"image": ["x1", "i1"], "what": ["chef", "chef"]})
    return with_data(data(), labels={"file": listed, "concept": "what"})


def mapped(column, **concept):
    return small(models={"m": {"file": data()["scores"], "map": concept or {"chef": column}}})


def with_classes(n_others, **changes):
    """A model with further classes, or one whose concepts are all of its classes."""
    scores = data()["scores"]
    further = {f"other {place}": np.full(len(scores), 9.0 + place) for place in range(n_others)}
    model = {"file": scores.with_columns(**further), "all_classes": not n_others}
    return small(models={"m": model}, **changes)


BOX = {"min_positives": 20, "where": {"box": {"min": 0.05}}}
FAR = {"small": {"where": {"box": {"max": 1}}}, "large": {"where": {"box": {"min": 9}}}}
NOBODY = {"gender": {"A": ["a"], "B": ["nobody"]}}
LABELS, SCORES, IMAGES = "labels (data frame)", "scores of m (data frame)", "images (data frame)"


@pytest.mark.parametrize(
    ("settings", "file", "column", "row"),
    [
        (changed("labels", "nurse", 2, 2), LABELS, "nurse", 3),
        (changed("labels", "nurse", 2, None), LABELS, "nurse", 3),
        (changed("labels", "chef", 0, "yes"), LABELS, "chef", 1),
        (listed_elsewhere(), LABELS, "image", 1),
        (changed("scores", "chef", 4, None), SCORES, "chef", 5),
        (changed("scores", "chef", 4, np.nan), SCORES, "chef", 5),
        (changed("scores", "chef", 4, np.inf), SCORES, "chef", 5),
        (mapped("chief"), SCORES, "chief", None),
        (mapped("", shef="chef"), LABELS, None, None),
        (small(concepts=["chef", "cook"]), LABELS, None, None),
        (values(data() | {"scores": data()["scores"].drop("chef")}, concepts=["chef"]),
         SCORES, None, None),
        (changed("images", "box", 399, "large") | {"choices": BOX}, IMAGES, "box", 400),
        (small(choices={"terms": NOBODY}), IMAGES, None, None),
        (values(data(box=[0.2] * 400), versions=FAR), IMAGES, None, None),
        (small(hit_rate=2), SCORES, None, None),
        (with_classes(0, hit_rate=4), SCORES, None, None),
        (with_classes(3, hit_rate=7), SCORES, None, None),
    ],
)  # fmt: skip
def test_wrong_data_are_refused_by_the_plan_and_the_run(settings, file, column, row):
    for step in (audits.plan, audits.run):
        with pytest.raises(DataError) as raised:
            step(audits.parse_config(settings, source="c"))
        error = raised.value
        assert (error.file, error.column, error.row) == (file, column, row)
        assert error.expected


def test_the_hit_rate_ranks_classes_that_are_not_measured():
    hit_rate = {}
    for n_others in (0, 2, 3):
        result = audits.run(audits.parse_config(with_classes(n_others, hit_rate=3)))
        hit_rate[n_others] = next(
            finding.value for finding in result.findings if finding.metric == "hit_rate"
        )
    assert 1 > hit_rate[0] > hit_rate[2] > hit_rate[3] == 0


def test_a_class_of_another_mapping_takes_its_place_in_the_hit_rate():
    """A class that a version alone maps is another class in the baseline."""
    settings = with_classes(3, hit_rate=3, versions={"wide": {"map": "wide"}})
    settings["models"]["m"]["maps"] = {"wide": {"chef": ["chef", "other 0", "other 1", "other 2"]}}
    result = audits.run(audits.parse_config(settings))
    hit_rates = {
        finding.version: finding
        for finding in result.findings
        if (finding.metric, finding.aggregate) == ("hit_rate", "value")
    }
    # Nothing but the three classes that score highest is among the first three.
    assert hit_rates["default"].value == 0
    assert hit_rates["wide"].value > 0.2
    gaps = [
        finding
        for finding in result.findings
        if finding.metric == "hit_rate" and finding.aggregate == "difference"
    ]
    assert {finding.version: finding.verdict is Verdict.NONE for finding in gaps} == {
        "default": False, "wide": True,
    }  # fmt: skip
