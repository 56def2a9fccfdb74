"""The page of an experiment with faces: the source's table in form, and what faces still tell."""

from dataclasses import replace

import pyarrow as pa

from equipoise.core import AuditResult, Verdict
from equipoise.mitigate.augmentation.page import PAGE, augmentation
from equipoise.mitigate.augmentation.sentences import ARMS, accuracies, conclusions, in_short
from equipoise.report.blocks import Table, Words
from equipoise.report.rendering import render
from report.synthetic import faces
from report.synthetic_large import augmentation as experiment


def tables() -> list[Table]:
    section = augmentation(experiment())
    assert section is not None
    return [block for block in section.blocks if isinstance(block, Table)]


def test_the_form_of_the_source_s_table() -> None:
    first, second, *_ = tables()
    assert [column.title for column in first.columns] == [
        "Network", "Biased", "Partial mixing", "Uniform noise", "Balanced"
    ]  # fmt: skip
    assert accuracies(experiment()) == [
        ("cnn", *(f"{0.6 + place / 10:.3f} [0.500, 0.950]" for place in range(len(ARMS))))
    ]
    assert [row[1] for row in second.rows] == [*ARMS[:3]]
    assert second.rows[0][2:] == (
        "0.300", "[0.100, 0.400]", "[0.000, 0.500]", "30.0 %", "[20.0, 41.5]"
    )  # fmt: skip


def test_what_helped_and_what_did_not_in_plain_words() -> None:
    result = experiment()
    assert in_short(result) == [
        "cnn, right answers, held against training on the biased images as they are: partial "
        "mixing helped, +10.0 points [5.0, 15.0]; uniform noise was not shown to help or to harm, "
        "−2.0 points [−6.0, 2.0]; balanced images made no difference that matters, +0.1 points "
        "[−0.4, 0.6]."
    ]
    mixed, noisy, balanced = conclusions(result)
    assert mixed == (
        "cnn: partial mixing helped. Right on 70.0\u00a0% [50.0, 95.0] of the test images, on "
        "60.0\u00a0% [50.0, 95.0] after the biased ones as they are: +10.0 points [5.0, 15.0], "
        "q\u00a00.002. That is 20.0 points [2.0, 50.0] short of balanced images."
    )
    assert noisy.endswith("10.0 points [4.0, 50.0] short of balanced images.")
    assert balanced.endswith("+0.1 points [−0.4, 0.6], q\u00a00.002.")
    page = render(result, PAGE)
    assert all(text in page for text in (*in_short(result), *conclusions(result)))


def noted(rows: list[dict[str, object]], name: str = "augmentation") -> str:
    """Return what the section says first, of these rows of one of its tables."""
    result = experiment()
    tables = result.tables | {name: pa.Table.from_pylist(rows, result.tables[name].schema)}
    section = augmentation(AuditResult(result.findings, result.manifest, tables))
    assert section is not None
    first = section.blocks[0]
    assert isinstance(first, Words)
    return " ".join(first.items)


def test_trainings_that_are_at_chance() -> None:
    rows = experiment().tables["augmentation"].to_pylist()
    chance = "Always naming the most frequent class is right on 25.0\u00a0%."
    assert noted(rows).endswith(f"where they do not say otherwise. {chance}")
    rows[0] |= {"low": 0.2}
    rows[3] |= {"low": 0.25}
    assert noted(rows).endswith(
        f"otherwise. {chance} Not shown to do better: cnn (biased) and cnn (balanced)."
    )
    lost = [row | {"low": 0.25} for row in rows]
    other = [row | {"network": "vit", "low": 0.2 + place / 10} for place, row in enumerate(rows)]
    assert noted([*lost, *other]).endswith(
        f"otherwise. {chance} Not shown to do better after any training: cnn. Where no difference "
        "was shown there, nothing follows from it. Not shown to do better: vit (biased)."
    )


def test_images_are_called_even_only_where_they_are() -> None:
    rows = experiment().tables["augmentation_images"].to_pylist()
    even = "test images, in which each group is as frequent with each answer. Training on balanced"
    held = "Training on balanced images is what the others are held against."
    assert even in noted(rows, "augmentation_images")
    assert f"asked the same test images. {held} Intervals" in noted([], "augmentation_images")
    rows[-1] |= {"count": 47}
    assert (
        "asked the same test images. In these, groups are not equally frequent with each answer "
        "(bar: long 50, short 50; ring: long 50, short 47), so that an accuracy counts the more "
        f"frequent more. {held} Intervals"
    ) in noted(rows, "augmentation_images")
    rows[-1] |= {"count": 50}
    rows[0] |= {"count": 1200}
    said = noted(rows, "augmentation_images")
    assert even in said
    assert (
        f"{held} In the images given as balanced, groups are not equally frequent with each answer "
        "(bar: long 1\u202f200, short 50; ring: long 50, short 50). Intervals"
    ) in said
    many = [
        {"images": "test", "class": f"c{place}", "group": group, "count": place + (group == "x")}
        for place in range(11) for group in "xy"
    ]  # fmt: skip
    assert "; c7: x 8, y 7; 3 more in the table below)" in noted(many, "augmentation_images")
    page = render(experiment(), PAGE)
    assert "Images of each label and group" in page
    assert "balanced test images" not in page


def test_trainings_without_a_verdict_are_told_with_the_reason() -> None:
    result = experiment()

    def of(*places: int, reason: str) -> AuditResult:
        found = [
            replace(one, verdict=Verdict.NONE, reason=reason) if place in places else one
            for place, one in enumerate(result.findings)
        ]
        return AuditResult(tuple(found), result.manifest, result.tables)

    held = "cnn, right answers, held against training on the biased images as they are:"
    assert in_short(of(0, 1, 2, reason="it learned nothing")) == [
        f"{held} no verdict for partial mixing, uniform noise and balanced images (it learned "
        "nothing)."
    ]
    few = of(0, 1, reason="few faces")
    assert in_short(few) == [
        f"{held} balanced images made no difference that matters, +0.1 points [−0.4, 0.6]; no "
        "verdict for partial mixing and uniform noise (few faces)."
    ]
    assert conclusions(few)[0].startswith("cnn: no verdict for partial mixing (few faces). Right")
    page = render(few, PAGE)
    assert all(text in page for text in (*in_short(few), *conclusions(few)))


def test_words_for_harm_for_one_run_and_for_what_is_as_good_as_balanced_images() -> None:
    result = experiment()
    rows = result.tables["augmentation"].to_pylist()
    rows[1] |= {"runs": 1, "difference_low": 0.0, "runs_low": None, "runs_high": None}
    rows[2] |= {"accuracy": 0.95}
    harm = replace(result.findings[0], value=-0.1, ci_low=-0.15, ci_high=-0.05)
    schema = result.tables["augmentation"].schema
    tables = {"augmentation": pa.Table.from_pylist(rows, schema)}
    made = AuditResult((harm, result.findings[1]), result.manifest, tables)
    first, second = conclusions(made)
    assert first.startswith("cnn: partial mixing did harm. Right on 70.0")
    assert first.endswith(
        "−10.0 points [−15.0, −5.0], q\u00a00.002. Not told apart from balanced images, with 20.0 "
        "points [0.0, 40.0] between them. Of one training run, which says nothing of "
        "training again."
    )
    assert second.endswith("10.0 points [4.0, 50.0] beyond balanced images.")


def test_other_results_have_no_such_section() -> None:
    assert augmentation(faces()) is None
