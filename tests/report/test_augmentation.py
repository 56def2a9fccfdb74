"""The page of an experiment with faces: the source's table in form, and what faces still tell."""

from equipoise.report.augmentation import ARMS, accuracies
from equipoise.report.blocks import Table
from equipoise.report.page import render
from equipoise.report.sections.augmentation import augmentation
from report.synthetic import faces
from report.synthetic_large import augmentation as experiment


def tables() -> list[Table]:
    section = augmentation(experiment())
    assert section is not None
    return [block for block in section.blocks if isinstance(block, Table)]


def test_the_form_of_the_source_s_table() -> None:
    first, second = tables()
    assert [column.title for column in first.columns] == [
        "Network", "Biased", "Partial mixing", "Uniform noise", "Balanced"
    ]  # fmt: skip
    assert accuracies(experiment()) == [
        ("cnn", *(f"{0.6 + place / 10:.3f} [0.500, 0.950]" for place in range(len(ARMS))))
    ]
    assert [row[1] for row in second.rows] == [*ARMS[:3]]
    assert second.rows[0][2:] == ("0.300", "[0.100, 0.400]", "[0.000, 0.500]", "30.0 %")


def test_the_page_says_how_runs_are_paired() -> None:
    page = render(experiment())
    assert "runs of one number start from the same weights" in page
    assert "is right more often?" in page
    assert "exchange the answers of two models" not in page
    assert "Images in which no face was found" in page
    assert "the most frequent class is right on 25.0" in page
    assert "Not shown to be better" not in page
    assert "No two metrics" not in page
    assert "<title>Training on changed faces</title>" in page


def test_other_results_have_no_such_section() -> None:
    assert augmentation(faces()) is None
