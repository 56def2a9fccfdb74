"""Findings of audits of associations are the numbers of the metrics on the sets named."""

import json
import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from audits.associations.association_world import (
    WORDS,
    asked,
    image_vectors,
    images,
    model,
    pick,
    rows_of,
    run,
    values,
    word_vectors,
    words,
)
from equipoise import metrics as m
from equipoise.core import Verdict
from equipoise.core.finding import Family
from equipoise.metrics import ImageSimilarities
from equipoise.report.words import figures, sentence
from equipoise.stats.resampling import Bootstrap

IMAGES, TEXTS = image_vectors(), word_vectors()
MEN, WOMEN = (IMAGES[rows_of("gender", one)] for one in ("Male", "Female"))
HE, SHE = (TEXTS[rows_of("list", one)] for one in ("men", "women"))
DOCTORS, NURSES = (IMAGES[rows_of("job", one)] for one in ("doctor", "nurse"))
DOCTOR, NURSE = TEXTS[rows_of("list", "prompt")][:1], TEXTS[rows_of("list", "prompt")][1:]
FEW = Bootstrap(60, 200, 0.95, 1 / 200)
OUTSIDE = {"subject": "name", "value": "salary"}


def test_association_scores_are_those_of_the_sets_in_every_modality() -> None:
    result = run(asked("association_score", "doctor"))
    sides = {
        "II": (DOCTORS, MEN, WOMEN),
        "ITP": (DOCTOR, MEN, WOMEN),
        "ITA": (DOCTORS, HE, SHE),
        "TT": (DOCTOR, HE, SHE),
    }
    assert {f.version for f in result.findings} == {*sides}
    for modality, arrays in sides.items():
        found = pick(result, "association_score", version=modality)
        direct = m.association_score(*arrays, rng=3)
        assert found.value == direct.value
        assert (found.subject, found.groups) == ("doctor", "men against women")
        assert [one.group for one in found.by_group] == ["men", "women"]
        assert found.value == pytest.approx(found.by_group[0].value - found.by_group[1].value)


def test_a_planted_lean_is_a_disparity_told_in_words() -> None:
    result = run(asked("association_score", "doctor", "nurse", modalities=["II"]))
    doctor = pick(result, "association_score", subject="doctor")
    nurse = pick(result, "association_score", subject="nurse")
    assert doctor.verdict == nurse.verdict == Verdict.DISPARITY
    assert doctor.direction == "doctor is closer to men than to women (images with images)"
    assert nurse.direction == "nurse is closer to women than to men (images with images)"
    assert json.loads(nurse.parameters)["sets"] == {"targets": "nurse", "a": "men", "b": "women"}


def test_a_lean_that_is_smaller_than_matters_is_below_the_threshold() -> None:
    result = run(
        asked("association_score", "doctor", "nurse", modalities=["II"]),
        models={"m": model(0.0)},
        testing={"thresholds": {"association_score": 0.2}},
    )
    assert {f.verdict for f in result.findings} == {Verdict.BELOW_THRESHOLD}


def test_weat_enumerates_and_its_other_scale_is_not_tested() -> None:
    result = run(asked("weat", "science", "arts", modalities=["TT"]))
    found = pick(result, "weat")
    x, y = (TEXTS[rows_of("list", one)] for one in ("science", "arts"))
    direct = m.weat(x, y, HE, SHE, rng=3)
    assert (found.value, found.p_value) == (direct.value, direct.p_value)
    assert found.p_value == 1 / math.comb(6, 3)
    assert (found.subject, found.family) == ("science against arts", Family.COMPOSITE)
    assert found.direction == "science goes with men, arts with women (texts with texts)"
    again = pick(result, "differential_association")
    assert again.family is Family.DESCRIPTIVE
    assert math.isnan(again.p_value)
    assert again.reason == "the same test as weat, on another scale"


def test_text_sets_are_compared_with_images_and_texts_of_the_groups() -> None:
    result = run(asked("weat", "science", "arts", alternative="two-sided", ddof=0))
    assert {f.version for f in result.findings} == {"ITP", "TT"}
    assert json.loads(pick(result, "weat", version="TT").parameters)["ddof"] == 0


def test_targets_that_lean_to_one_set_are_not_said_to_go_with_two() -> None:
    men = {"images": {"gender": "Male"}, "words": ["male", "him"]}
    both = {"arts": {"words": ["man", "he"]}, "men": men}
    result = run(asked("weat", "science", "arts", modalities=["TT"], alternative="less"), sets=both)
    found = pick(result, "weat")
    assert found.value < 0
    assert all(one.value > 0 for one in found.by_group)
    assert found.direction == "science goes more with women than arts does (texts with texts)"
    question = asked("differential_association", "arts", "science", modalities=["ITP"])
    concepts = run(question, sets=both)
    assert pick(concepts, "differential_association").direction == (
        "arts goes more with men than science does (texts of the target with images of the groups)"
    )


def test_sc_weat_measures_every_member() -> None:
    result = run(asked("sc_weat", "science", modalities=["TT"]))
    assert [f.subject for f in result.findings] == WORDS["science"]
    w = TEXTS[rows_of("list", "science")]
    assert [f.value for f in result.findings] == [m.sc_weat(w[k], HE, SHE).value for k in range(3)]


def test_differential_association_of_two_concepts() -> None:
    result = run(asked("differential_association", "doctor", "nurse", modalities=["ITP"]))
    found = pick(result, "differential_association")
    assert found.value == m.differential_association(DOCTOR, NURSE, MEN, WOMEN).value
    assert "c1, c2 fixed" in found.method


def test_mcas_is_the_sum_of_its_parts_which_are_not_tested_again() -> None:
    result = run(asked("mcas", "doctor"))
    whole = pick(result, "mcas")
    parts = [f for f in result.findings if f.metric == "association_score"]
    assert sum(f.value for f in parts) == pytest.approx(whole.value, abs=1e-12)
    assert whole.family is Family.COMPOSITE
    assert {f.family for f in parts} == {Family.DESCRIPTIVE}
    assert whole.direction == "doctor is closer to men than to women"
    assert result.tables["mcas_parts"].column("part").to_pylist() == ["II", "ITP", "ITA", "TT"]


def test_parts_of_mcas_that_are_asked_for_are_told_once() -> None:
    result = run(asked("mcas", "doctor"), asked("association_score", "doctor"))
    parts = [f for f in result.findings if f.metric == "association_score"]
    assert [f.family for f in parts] == [Family.LEAF] * 4


def test_generated_images_have_diffusion_bias_and_amplification() -> None:
    result = run(asked("mcas", "doctor", "nurse", generated=True))
    direct = m.mcas(DOCTORS, DOCTOR, MEN, HE, WOMEN, SHE, rng=3)
    size = pick(result, "diffusion_bias", subject="doctor")
    assert size.value == m.diffusion_bias(direct).value
    assert size.direction == "the images of doctor lean less than its texts"
    gain = pick(result, "bias_amplification", subject="doctor")
    assert gain.value == m.bias_amplification(direct).value
    assert gain.family is Family.DESCRIPTIVE
    assert result.tables["amplification"].num_rows == 2


def test_diffusion_bias_has_an_interval_and_no_test_of_another_hypothesis() -> None:
    found = pick(run(asked("mcas", "doctor", generated=True)), "diffusion_bias")
    direct = m.diffusion_bias(m.mcas(DOCTORS, DOCTOR, MEN, HE, WOMEN, SHE, rng=3, resampling=FEW))
    assert (found.family, found.verdict, found.null) == (Family.DESCRIPTIVE, Verdict.NONE, "")
    assert math.isnan(found.p_value)
    assert math.isnan(found.chance)
    interval = direct.interval()
    assert (found.ci_low, found.ci_high) == (interval.low, interval.high)
    signed = direct.parts[0]
    assert found.reason == (
        "not tested: its null, that groups are exchangeable, is not that both sizes are equal: "
        f"read the interval of |II| - |TT|, {signed.low:.3g} to {signed.high:.3g}"
    )


def test_images_that_lean_to_the_other_side_than_their_texts_are_told() -> None:
    crossed_over = {"doctor": {"images": {"job": "nurse"}, "words": ["a photo of a doctor"]}}
    found = pick(run(asked("mcas", "doctor", generated=True), sets=crossed_over), "diffusion_bias")
    assert found.direction.endswith("and to opposite sides: images to women, texts to men")


def test_amplification_over_texts_that_lean_nowhere_is_not_estimable() -> None:
    flat = word_vectors(0.0)
    flat[:, 1] = 0.0
    both = {"images": {"file": IMAGES}, "words": {"file": flat}}
    many = {
        "men": {"images": {"gender": "Male"}, "words": words()["word"].to_list()[:10]},
        "women": {"images": {"gender": "Female"}, "words": words()["word"].to_list()[8:18]},
    }
    result = run(
        asked("mcas", "doctor", generated=True, resample_texts=True),
        models={"m": {"embeddings": both}},
        sets=many,
    )
    found = pick(result, "bias_amplification")
    assert found.verdict == Verdict.NOT_ESTIMABLE
    assert found.reason.startswith("the 95 % interval of TT, ")
    assert result.tables["amplification"].column("reason").to_pylist() == [found.reason]


def test_categories_are_summarised_by_direction() -> None:
    question = {
        "metric": "mcas",
        "targets": {"care": ["nurse"], "medicine": ["doctor"]},
        "attributes": ["men", "women"],
    }
    result = run(question)
    rows = result.tables["score_summaries"].to_pylist()
    lean = {(r["category"], r["direction"]): r["targets"] for r in rows}
    assert lean["care", "second"] == lean["medicine", "first"] == 1
    assert lean["care", "first"] == 0
    assert pick(result, "score_summary").family is Family.DESCRIPTIVE


def test_xmcas_with_its_offset_from_neutral_targets() -> None:
    others = {"others": {"images": ["p00", "p01", "p02"], "words": ["honest", "gentle"]}}
    result = run(asked("xmcas", "doctor", further="others", neutral=["nurse"]), sets=others)
    neutral = m.mcas(NURSES, NURSE, MEN, HE, WOMEN, SHE, resampling=None).value
    assert pick(result, "offset").value == abs(neutral)
    good = TEXTS[rows_of("list", "good")]
    direct = m.xmcas(
        DOCTORS, DOCTOR, MEN, HE, WOMEN, SHE, IMAGES[:3], good, offset=abs(neutral), resampling=None
    )
    assert pick(result, "xmcas").value == pytest.approx(direct.value, abs=1e-12)
    assert {*result.tables["xmcas"].column("group").to_pylist()} == {"", "others"}
    angle = pick(result, "xmcas")
    assert angle.direction.endswith("than the neutral angle of 0.322\u00a0rad (18.4°) does")
    assert f"for “doctor” is {math.degrees(angle.value):.1f}°" in sentence(angle)


def test_encoders_are_compared_and_the_larger_one_is_named() -> None:
    result = run(
        asked("total_absolute_association", "doctor", "nurse", modalities=["II"]),
        models={"weak": model(0.1), "lean": model(1.5)},
    )
    found = pick(result, "encoder_difference")
    assert (found.model, found.subject) == ("lean", "against weak")
    totals = {f.model: f.value for f in result.findings if f.metric != "encoder_difference"}
    assert found.value == pytest.approx(totals["lean"] - totals["weak"])
    assert found.ci_low <= found.value <= found.ci_high
    assert found.direction == "the targets lean more with lean than with weak"
    assert found.reason == "no practical threshold is set for this metric"


def test_labels_are_the_texts_that_images_are_most_similar_to() -> None:
    question = {"images": "images", "groups": "gender", "labels": "prompts"}
    result = run(
        {"metric": "predicted_label_weat", **question, "attributes": ["men", "women"]},
        {"metric": "label_concentration", **question, "k": 1},
    )
    unit = IMAGES / np.linalg.norm(IMAGES, axis=1, keepdims=True)
    prompts = TEXTS[rows_of("list", "prompt")]
    nearest = (unit @ (prompts / np.linalg.norm(prompts, axis=1, keepdims=True)).T).argmax(axis=1)
    chosen = np.array(WORDS["prompt"], dtype=object)[nearest]
    direct = m.label_concentration(chosen, images()["gender"].to_list(), k=1, resampling=None)
    assert pick(result, "label_concentration").value == direct.value
    assert (
        pick(result, "label_concentration").method
        == pick(result, "label_kurtosis").method
        == (
            "resampling spread: percentile bootstrap over images, 60 replicates; not a confidence "
            "interval: resampling adds noise of its own to the counts, which moves their shape"
        )
    )
    assert "resampling spread" in figures(pick(result, "predicted_label_weat"))
    rows = result.tables["labels"].to_pylist()
    counted = {(r["group"], r["label"]): r["count"] for r in rows}
    males = images()["gender"].to_numpy() == "Male"
    assert counted["Male", WORDS["prompt"][0]] == (chosen[males] == WORDS["prompt"][0]).sum()


def test_labels_of_a_column_need_no_embeddings() -> None:
    table = images().with_columns(label=pl.Series(["x", "y", "z", "z"] * 16))
    data = values()["data"] | {"images": {"table": table, "id": "image", "kind": "image"}}
    question = {"metric": "label_concentration", "images": "images", "groups": "gender"}
    result = run({**question, "label_column": "label", "k": 1}, data=data)
    direct = m.label_concentration(
        table["label"].to_list(), table["gender"].to_list(), k=1, resampling=None
    )
    assert pick(result, "label_concentration").value == direct.value


def similarities() -> ImageSimilarities:
    unit = IMAGES / np.linalg.norm(IMAGES, axis=1, keepdims=True)
    text = TEXTS / np.linalg.norm(TEXTS, axis=1, keepdims=True)
    some = text[np.concatenate([rows_of("list", "good"), rows_of("list", "bad")])]
    table = images()
    listed = [*WORDS["good"], *WORDS["bad"]]
    return ImageSimilarities(unit @ some.T, listed, table["gender"], table["region"])


PLACES = pl.DataFrame({"name": ["north", "south", "east"], "salary": [1.0, 2.0, 4.0]})
REGIONS = {
    "images": "images",
    "groups": "gender",
    "regions": "region",
    "positive": "good",
    "negative": "bad",
    "outside": {"table": PLACES, **OUTSIDE},
}


def test_trend_and_gender_difference_by_region() -> None:
    result = run({"metric": "trend", **REGIONS}, {"metric": "gender_difference", **REGIONS})
    given = similarities()
    words_of = (WORDS["good"], WORDS["bad"])
    direct = m.trend(given, *words_of, resampling=None)
    assert pick(result, "trend", subject="").value == pytest.approx(direct.value, abs=1e-12)
    apart = m.gender_difference(given, *words_of, resampling=None)
    for part in apart.parts:
        found = pick(result, "gender_difference", subject=part.subject)
        assert found.value == pytest.approx(part.value, abs=1e-12)
        assert found.family is Family.LEAF
    women = [one.by_group[0].value for one in sorted(direct.parts, key=lambda p: p.subject)]
    related = m.correlation(women, [4.0, 1.0, 2.0])
    found = pick(result, "correlation", subject="trend, Female and salary")
    assert found.value == pytest.approx(related.value, abs=1e-12)
    assert found.p_value == pytest.approx(related.p_value, abs=1e-12)
    assert result.tables["words"].num_rows == 3 * 2 * 4


def test_alignment_and_correlation_with_outside_figures() -> None:
    jobs = pl.DataFrame({"name": ["doctor", "nurse"], "salary": [1, -1]})
    three = pl.DataFrame({"name": ["doctor", "nurse", "men at work"], "salary": [200, 80, 100]})
    work = {"men at work": {"images": ["p01", "p03"]}}
    result = run(
        asked("alignment", "doctor", "nurse", modalities=["II"],
              hypothesis={"table": jobs, **OUTSIDE}),
        asked("correlation", "doctor", "nurse", "men at work", modalities=["II"],
              outside={"table": three, **OUTSIDE}),
        sets=work,
    )  # fmt: skip
    scores = [
        m.association_score(one, men, WOMEN, resampling=None).value
        # Men at work are not compared with themselves.
        for one, men in ((DOCTORS, MEN), (NURSES, MEN), (IMAGES[[1, 3]], MEN[2:]))
    ]
    assert pick(result, "alignment").value == pytest.approx((scores[0] - scores[1]) / 2)
    assert pick(result, "alignment").direction == "preferences follow salary"
    assert pick(result, "correlation").value == pytest.approx(
        m.correlation(scores, [200, 80, 100]).value
    )
    assert pick(result, "correlation").subject == "association score and salary"


def test_scores_of_pairs_give_what_the_embeddings_behind_them_give() -> None:
    def unit(rows: np.ndarray) -> np.ndarray:
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    blocks = [
        {"between": ["words", "images"], "file": unit(TEXTS) @ unit(IMAGES).T},
        {"between": ["images", "images"], "file": unit(IMAGES) @ unit(IMAGES).T},
        {"between": ["words", "words"], "file": unit(TEXTS) @ unit(TEXTS).T},
    ]
    names = [images()["image"].to_list(), images()["image"].to_list(), words()["word"].to_list()]
    pairs = [{**block, "names": one} for block, one in zip(blocks, names, strict=True)]
    questions = (asked("mcas", "doctor"), asked("weat", "science", "arts"))
    scored = run(*questions, models={"m": {"pairs": pairs}})
    embedded = run(*questions)
    assert len(scored.findings) == len(embedded.findings)
    for first, second in zip(scored.findings, embedded.findings, strict=True):
        assert first.value == pytest.approx(second.value, abs=1e-12)
    assert json.loads(pick(scored, "mcas").parameters)["similarity"] == "scores of pairs"


def test_units_are_exchanged_as_a_whole() -> None:
    data = values()["data"]
    data["images"] = {**data["images"], "unit": "person"}
    found = pick(
        run(asked("association_score", "doctor", modalities=["II"]), data=data), "association_score"
    )
    assert found.unit == "unit"
    assert "random exchanges of units" in found.null
    direct = m.association_score(
        DOCTORS, MEN, WOMEN, units={
            "a": images()["person"].to_numpy()[rows_of("gender", "Male")],
            "b": images()["person"].to_numpy()[rows_of("gender", "Female")],
        }, resampling=FEW, rng=3,
    )  # fmt: skip
    assert found.p_value == direct.p_value


def test_ids_in_another_order_give_the_same_findings() -> None:
    order = np.random.default_rng(5).permutation(len(IMAGES))
    shuffled = pl.DataFrame({"image": images()["image"].to_numpy()[order]}).with_columns(
        v=pl.Series(IMAGES[order].tolist())
    )
    both = {"images": {"file": shuffled, "id": "image", "column": "v"}, "words": {"file": TEXTS}}
    questions = (asked("mcas", "doctor", "nurse"), {"metric": "trend", **REGIONS})
    again = run(*questions, models={"m": {"embeddings": both}})
    for first, second in zip(run(*questions).findings, again.findings, strict=True):
        assert repr(first) == repr(second)


def test_two_versions_of_one_question_stand_side_by_side() -> None:
    few = {"few men": {"words": ["man"]}, "few women": {"words": ["woman"]}}
    questions: list[dict[str, Any]] = [
        asked("weat", "science", "arts", modalities=["TT"]),
        asked("weat", "science", "arts", modalities=["TT"], version="two-sided",
              alternative="two-sided"),
    ]  # fmt: skip
    found = [f for f in run(*questions, sets=few).findings if f.metric == "weat"]
    assert [f.version for f in found] == ["TT", "TT, two-sided"]
    assert found[1].p_value == 2 * found[0].p_value


def test_values_alone() -> None:
    result = run(asked("mcas", "doctor", generated=True), resampling={"method": "none"})
    assert all(math.isnan(f.p_value) for f in result.findings)
    assert all(f.reason for f in result.findings)


def test_a_model_without_texts_is_asked_what_it_can_answer() -> None:
    only = {"embeddings": {"images": {"file": IMAGES}}}
    result = run(
        asked("association_score", "doctor"),
        asked("mcas", "doctor"),
        models={"m": model(), "images only": only},
    )
    assert [f.version for f in result.findings if f.model == "images only"] == ["II"]
    assert (
        "measure[1] (mcas) isn't measured for images only: it lacks embeddings or scores."
        in result.manifest.notes
    )


def test_one_model_alone_is_asked_where_it_is_named() -> None:
    result = run(
        {**asked("association_score", "doctor"), "model": "n"}, models={"m": model(), "n": model(2)}
    )
    assert {f.model for f in result.findings} == {"n"}
    assert not any("isn't measured" in note for note in result.manifest.notes)


def test_the_plan_counts_tests_and_says_what_could_be_found() -> None:
    from equipoise import audits

    questions = (
        asked("weat", "science", "arts", modalities=["TT"]),
        asked("mcas", "doctor", generated=True),
    )
    config = audits.parse_config(values(*questions))
    plan = audits.plan(config)
    assert plan.tests == 2
    assert sum(not math.isnan(f.p_value) for f in run(*questions).findings) == plan.tests
    assert plan.details["detectable"] == [
        {"targets": "science against arts", "model": "m", "modality": "TT", "smallest_p": 0.05,
         "effect_size": None}
    ]  # fmt: skip
    assert any("Sets of one" in note for note in plan.notes)
    assert {"set": "doctor", "images": 12, "texts": 1} in plan.details["sets"]
    assert {"model": "m", "table": "images", "usable": 64, "without": 0} in plan.details["models"]
