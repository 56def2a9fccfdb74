"""The page of an experiment with faces: the source's table in form, and what faces still tell."""

from dataclasses import replace

from equipoise.core import AuditResult, Verdict
from equipoise.mitigate.augmentation.page import PAGE, augmentation
from equipoise.mitigate.augmentation.sentences import ARMS, accuracies, conclusions, in_short
from equipoise.report.blocks import Table
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


def test_other_results_have_no_such_section() -> None:
    assert augmentation(faces()) is None
