"""Findings of audits of associations are the numbers of the metrics on the sets named."""

import math

import numpy as np
import polars as pl
import pytest

from audits.associations.association_world import (
    DATA,
    IMAGES,
    SETS,
    WORDS,
    image_vectors,
    measure,
    model,
    model_of,
    pick,
    rows_of,
    run,
    values,
    word_vectors,
)
from audits.associations.association_world import TEXTS as ALL_TEXTS
from equipoise import audits
from equipoise import metrics as m
from equipoise.core import DataError, Family, Verdict
from equipoise.metrics import ImageSimilarities
from equipoise.stats import Bootstrap

PIXELS, TEXTS = image_vectors(), word_vectors()
MEN, WOMEN = (PIXELS[rows_of("gender", name)] for name in ("Male", "Female"))
HE, SHE = (TEXTS[rows_of("list", name)] for name in ("men", "women"))
DOCTORS, NURSES = (PIXELS[rows_of("job", name)] for name in ("doctor", "nurse"))
DOCTOR = TEXTS[rows_of("list", "prompt")][:1]
DRAWS = Bootstrap(60, 200, 0.95, 1 / 200)
FIGURES = {"subject": "name", "value": "salary"}
II = {"modalities": ["II"]}
TT = {"modalities": ["TT"]}


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_association_scores_equal_the_metric_in_every_modality():
    result = run(measure("association_score", "doctor", "nurse"))
    sides = {
        "II": (DOCTORS, MEN, WOMEN),
        "ITP": (DOCTOR, MEN, WOMEN),
        "ITA": (DOCTORS, HE, SHE),
        "TT": (DOCTOR, HE, SHE),
    }
    for modality, arrays in sides.items():
        finding = pick(result, "association_score", subject="doctor", version=modality)
        assert finding.value == m.association_score(*arrays, rng=3).value
        assert [estimate.group for estimate in finding.by_group] == ["men", "women"]
    doctor, nurse = (
        pick(result, "association_score", subject=name, version="II")
        for name in ("doctor", "nurse")
    )
    assert doctor.verdict == nurse.verdict == Verdict.DISPARITY
    assert "closer to men" in doctor.direction
    assert "closer to women" in nurse.direction


def test_weat_enumerates_and_its_statistic_states_the_same_fact():
    questions = (
        measure("weat", "science", "arts", **TT),
        measure("weat", "science", "arts", **TT, version="v", alternative="greater"),
        measure("differential_association", "science", "arts", **TT),
    )
    result = run(*questions)
    finding = pick(result, "weat", version="TT")
    x, y = (TEXTS[rows_of("list", name)] for name in ("science", "arts"))
    direct = m.weat(x, y, HE, SHE, rng=3)
    assert (finding.value, finding.p_value) == (direct.value, direct.p_value)
    assert finding.p_value == 2 / math.comb(6, 3)
    assert finding.family is Family.COMPOSITE
    assert "these attribute sets" in finding.beside
    assert any("fewer than 50 targets" in note for note in result.manifest.notes)
    assert pick(result, "weat", version="TT, v").p_value == finding.p_value / 2
    statistic = pick(result, "weat_statistic", version="TT")
    assert statistic.family is Family.FOLD
    assert (statistic.q_value, statistic.verdict) == (finding.q_value, finding.verdict)
    # The question that is asked for its own sake keeps its name and scale.
    association = pick(result, "differential_association", version="TT")
    assert association.value == pytest.approx(statistic.value / 3)


@pytest.mark.parametrize("turn", ["targets", "attributes"])
def test_the_order_of_sets_decides_no_verdict(turn):
    spec = measure("weat", "science", "arts", modalities=["TT"], ddof=0)
    turned = spec | {turn: spec[turn][::-1]}
    first, second = (
        [f for f in run(question).findings if f.metric == "weat"] for question in (spec, turned)
    )
    for finding, other in zip(first, second, strict=True):
        assert other.value == pytest.approx(-finding.value)
        assert (other.p_value, other.verdict) == (finding.p_value, finding.verdict)
        assert (-other.ci_high, -other.ci_low) == pytest.approx((finding.ci_low, finding.ci_high))


@pytest.mark.parametrize("more", [(), (measure("association_score", "doctor"),)])
def test_mcas_is_the_sum_of_its_parts_which_are_tested_once_at_most(more):
    result = run(measure("mcas", "doctor"), *more)
    total = pick(result, "mcas", version="default")
    varied = pick(result, "mcas", version="texts resampled")
    assert (varied.value, varied.family) == (total.value, Family.COMPOSITE)
    assert math.isnan(varied.ci_low)
    assert "fewer than 10" in varied.reason
    parts = [f for f in result.findings if f.metric == "association_score"]
    assert sum(f.value for f in parts) == pytest.approx(total.value, abs=1e-12)
    assert total.family is Family.COMPOSITE
    assert [f.family for f in parts] == [Family.LEAF if more else Family.DESCRIPTIVE] * 4


def test_xmcas_with_its_offset():
    sets = {"others": {"images": ["p00", "p01", "p02"], "words": ["honest", "gentle"]}}
    result = run(measure("xmcas", "doctor", further="others", offset=0.02), sets=sets)
    good = TEXTS[rows_of("list", "good")]
    direct = m.xmcas(
        DOCTORS, DOCTOR, MEN, HE, WOMEN, SHE, PIXELS[:3], good, offset=0.02, resampling=None
    )
    assert pick(result, "xmcas").value == pytest.approx(direct.value, abs=1e-12)


def test_the_offset_of_xmcas_comes_from_neutral_targets():
    sets = {"others": {"images": ["p00", "p01", "p02"], "words": ["honest", "gentle"]}}
    question = {"metric": "xmcas", "further": ["others"], "attributes": ["men", "women"]}
    targets = {"care": ["nurse"], "cure": ["doctor"]}
    result = run(
        {**question, "targets": targets, "neutral": ["nurse"]}, measure("mcas", "nurse"), sets=sets
    )
    offset = abs(pick(result, "mcas", subject="nurse", version="default").value)
    assert pick(result, "offset").value == pytest.approx(offset)
    with_offset = run({**question, "targets": targets, "offset": offset}, sets=sets)
    for name in ("nurse", "doctor"):
        finding, direct = (
            pick(outcome, "xmcas", subject=name) for outcome in (result, with_offset)
        )
        assert finding.value == pytest.approx(direct.value)
    summary = pl.DataFrame(result.tables["score_summaries"]).filter(pl.col("metric") == "xmcas")
    assert {*summary["category"]} >= {"care", "cure"}


def test_encoders_are_compared_and_the_larger_one_is_named():
    result = run(
        measure("total_absolute_association", "doctor", "nurse", **II),
        models={"weak": model(0.1), "lean": model(1.5)},
    )
    finding = pick(result, "encoder_difference")
    assert (finding.model, finding.subject) == ("lean", "against weak")
    totals = {f.model: f.value for f in result.findings if f.metric != "encoder_difference"}
    assert finding.value == pytest.approx(totals["lean"] - totals["weak"])
    assert finding.ci_low <= finding.value <= finding.ci_high


def test_labels_are_the_nearest_texts():
    nearest = (unit(PIXELS) @ unit(TEXTS[rows_of("list", "prompt")]).T).argmax(axis=1)
    labels = np.array(WORDS["prompt"], dtype=object)[nearest]
    question = {"images": "images", "groups": "gender", "k": 1, "metric": "label_concentration"}
    result = run(question | {"labels": "prompts"})
    direct = m.label_concentration(labels, IMAGES["gender"].to_list(), k=1, resampling=None)
    assert pick(result, "label_concentration").value == direct.value
    rows = result.tables["labels"].to_pylist()
    counts = {(r["group"], r["label"]): r["count"] for r in rows}
    men = IMAGES["gender"].to_numpy() == "Male"
    assert counts["Male", WORDS["prompt"][0]] == (labels[men] == WORDS["prompt"][0]).sum()


def test_labels_are_counted_by_region_too():
    question = {"images": "images", "groups": "gender", "metric": "label_concentration", "k": 1}
    result = run(question | {"labels": "prompts", "regions": "region"})
    rows = pl.DataFrame(result.tables["labels"])
    regions = IMAGES["region"].drop_nulls()
    assert {*rows["region"]} == {"", *regions}
    counts = dict(rows.group_by("region").agg(pl.col("count").sum()).iter_rows())
    assert 0 < counts["north"] <= (regions == "north").sum() < counts[""]
    findings = {f.subject: f for f in result.findings if f.metric == "label_concentration"}
    assert {*findings} == {*rows["region"]}
    assert findings["north"].family is Family.LEAF


def test_sums_of_similarities_make_the_trend():
    result = run({"metric": "trend", **REGIONS})
    sums = pl.DataFrame(result.tables["word_sums"]).pivot(
        "kind", index=["region", "group"], values="similarity"
    )
    for region, group, positive, negative in sums.select(
        "region", "group", "positive", "negative"
    ).iter_rows():
        values = {g.group: g.value for g in pick(result, "trend", subject=region).by_group}
        assert values[group] == pytest.approx(positive - negative, abs=1e-12)


REGIONS = {
    "images": "images",
    "groups": "gender",
    "regions": "region",
    "positive": "good",
    "negative": "bad",
    "outside": {
        "table": pl.DataFrame({"name": ["north", "south", "east"], "salary": [1.0, 2.0, 4.0]}),
        **FIGURES,
    },
}


def test_trend_and_gender_difference_by_region():
    result = run({"metric": "trend", **REGIONS}, {"metric": "gender_difference", **REGIONS})
    words = (WORDS["good"], WORDS["bad"])
    vectors = TEXTS[np.concatenate([rows_of("list", "good"), rows_of("list", "bad")])]
    scores = ImageSimilarities(
        unit(PIXELS) @ unit(vectors).T, [*words[0], *words[1]], IMAGES["gender"], IMAGES["region"]
    )
    direct = m.trend(scores, *words, resampling=None)
    assert pick(result, "trend", subject="").value == pytest.approx(direct.value, abs=1e-12)
    for part in m.gender_difference(scores, *words, resampling=None).parts:
        finding = pick(result, "gender_difference", subject=part.subject)
        assert finding.value == pytest.approx(part.value, abs=1e-12)
        assert finding.family is Family.LEAF
    women = [part.by_group[0].value for part in sorted(direct.parts, key=lambda p: p.subject)]
    related = m.correlation(women, [4.0, 1.0, 2.0])
    finding = pick(result, "correlation", subject="trend, Female and salary")
    assert finding.value == pytest.approx(related.value, abs=1e-12)
    assert finding.p_value == pytest.approx(related.p_value, abs=1e-12)
    assert result.tables["words"].num_rows == 3 * 2 * 4


def test_alignment_and_correlation_with_external_figures():
    jobs = pl.DataFrame({"name": ["doctor", "nurse"], "salary": [1, -1]})
    three = pl.DataFrame({"name": ["doctor", "nurse", "men at work"], "salary": [200, 80, 100]})
    result = run(
        measure("alignment", "doctor", "nurse", **II, hypothesis={"table": jobs, **FIGURES}),
        measure("correlation", "doctor", "nurse", "men at work", **II,
                outside={"table": three, **FIGURES}),
        sets={"men at work": {"images": ["p01", "p03"]}},
    )  # fmt: skip
    scores = [
        m.association_score(targets, men, WOMEN, resampling=None).value
        # Men at work are not compared with themselves.
        for targets, men in ((DOCTORS, MEN), (NURSES, MEN), (PIXELS[[1, 3]], MEN[2:]))
    ]
    assert pick(result, "alignment").value == pytest.approx((scores[0] - scores[1]) / 2)
    direct = m.correlation(scores, [200, 80, 100])
    assert pick(result, "correlation").value == pytest.approx(direct.value)


def test_each_member_of_a_set_is_a_target_of_its_own():
    jobs = pl.DataFrame({"name": WORDS["science"], "salary": [1, 5, 2]})
    texts, question = {"modalities": ["ITP"]}, ("association_score", "science")
    result = run(
        measure(*question, **texts, each_member=True, version="each"),
        measure("association_score", "one", **texts),
        measure("correlation", "science", **texts, each_member=True,
                outside={"table": jobs, **FIGURES}),
        sets={"one": {"words": ["physics"]}},
    )  # fmt: skip
    scores = {
        finding.subject: finding.value
        for finding in result.findings
        if "each" in finding.version and finding.metric == "association_score"
    }
    assert [*scores] == WORDS["science"]
    assert scores["physics"] == pick(result, "association_score", subject="one").value
    direct = m.correlation([*scores.values()], [1, 5, 2])
    assert pick(result, "correlation").value == pytest.approx(direct.value)
    assert "physics" not in {*pl.DataFrame(result.tables["sets"])["set"]}


def test_a_member_may_not_have_the_name_of_another_set():
    question = measure("association_score", "science", each_member=True)
    with pytest.raises(DataError) as error:
        run(question, sets={"physics": {"words": ["dance"]}})
    assert error.value.fix == "rename the set"


def test_pair_scores_give_the_results_of_their_embeddings():
    rows = {"words": unit(TEXTS), "images": unit(PIXELS)}
    names = {"words": ALL_TEXTS["word"].to_list(), "images": IMAGES["image"].to_list()}
    pairs = [
        {"between": [first, second], "file": rows[first] @ rows[second].T, "names": names[second]}
        for first, second in (("words", "images"), ("images", "images"), ("words", "words"))
    ]
    questions = (measure("mcas", "doctor"), measure("weat", "science", "arts"))
    scored = run(*questions, models={"m": {"pairs": pairs}})
    for first, second in zip(scored.findings, run(*questions).findings, strict=True):
        assert first.value == pytest.approx(second.value, abs=1e-12)


def test_units_are_exchanged_as_a_whole():
    data = DATA | {"images": DATA["images"] | {"unit": "person"}}
    finding = pick(
        run(measure("association_score", "doctor", **II), data=data), "association_score"
    )
    assert finding.unit == "unit"
    people = IMAGES["person"].to_numpy()
    units = {
        part: people[rows_of("gender", name)] for part, name in (("a", "Male"), ("b", "Female"))
    }
    direct = m.association_score(DOCTORS, MEN, WOMEN, units=units, resampling=DRAWS, rng=3)
    assert finding.p_value == direct.p_value


def test_a_model_measures_its_available_embeddings():
    result = run(
        measure("association_score", "doctor"),
        measure("mcas", "doctor"),
        models={"m": model(), "images only": {"embeddings": {"images": {"file": PIXELS}}}},
        resampling={"method": "none"},
    )
    assert [f.version for f in result.findings if f.model == "images only"] == ["II"]
    assert all(math.isnan(f.p_value) and f.reason for f in result.findings)


def test_the_plan_shows_the_smallest_detectable_effects():
    plan = audits.plan(audits.parse_config(values(measure("weat", "science", "arts", **TT))))
    assert plan.details["detectable"] == [
        {"targets": "science against arts", "model": "m", "modality": "TT", "smallest_p": 0.1,
         "effect_size": None}
    ]  # fmt: skip
    assert {"set": "doctor", "images": 12, "texts": 1} in plan.details["sets"]


# A hundred men and women, of whom targets are a part: doctors are 36 men and 4 women, nurses the
# reverse.
N = 200
JOBS = np.full(N, "other", dtype=object)
JOBS[[*range(0, 72, 2), *range(1, 8, 2)]] = "doctor"
JOBS[[*range(9, 81, 2), *range(72, 80, 2)]] = "nurse"
PEOPLE = pl.DataFrame(
    {"image": [f"i{k:03d}" for k in range(N)], "gender": ["Male", "Female"] * (N // 2),
     "job": JOBS.tolist()}
)  # fmt: skip
PAIR = ("doctor", "nurse")
EVERY = (
    *(measure(metric, *PAIR, **II) for metric in (
        "association_score", "weat", "differential_association", "total_absolute_association",
    )),
    measure("mcas", *PAIR),
)  # fmt: skip


def noise(seed, n=N):
    return np.random.default_rng(seed).normal(size=(n, 512)).astype(np.float32)


def overlapping(vectors, *questions, **sets):
    """Measure targets whose members are in the sets of attributes, too."""
    data = DATA | {"images": DATA["images"] | {"table": PEOPLE}}
    models = {"m": model_of(vectors, noise(99, len(TEXTS)))}
    return run(*questions, data=data, models=models, sets=SETS | sets)


def test_noise_has_no_disparity_where_targets_are_members_of_the_attributes():
    ps = {}
    for seed in range(8):
        for finding in overlapping(noise(seed), *EVERY).findings:
            assert finding.verdict != Verdict.DISPARITY
            if np.isfinite(finding.p_value):
                ps.setdefault(finding.metric, []).append(finding.p_value)
    assert {*ps} >= {"association_score", "weat", "mcas", "total_absolute_association"}
    for metric, p_values in ps.items():
        # With self-pairs every p-value is as small as the permutations allow.
        assert np.median(p_values) > 0.1, metric
        assert min(p_values) > 0.2 / len(p_values) ** 2, metric


def test_targets_are_left_out_of_the_attributes():
    vectors = noise(1)
    men, women = (np.flatnonzero(PEOPLE["gender"] == name) for name in ("Male", "Female"))
    doctors, nurses = (np.flatnonzero(name == JOBS) for name in PAIR)
    result = overlapping(vectors, *EVERY)
    attributes = [vectors[np.setdiff1d(group, [*doctors, *nurses])] for group in (men, women)]
    direct = m.weat(vectors[doctors], vectors[nurses], *attributes, resampling=None)
    finding = pick(result, "weat")
    assert finding.value == pytest.approx(direct.value)
    assert [exclusion.count for exclusion in finding.excluded] == [40, 40]
    attributes = [vectors[np.setdiff1d(group, doctors)] for group in (men, women)]
    score = m.association_score(vectors[doctors], *attributes, resampling=None)
    finding = pick(result, "association_score", subject="doctor", version="II")
    assert finding.value == pytest.approx(score.value)
    assert [exclusion.count for exclusion in finding.excluded] == [36, 4]
    few = overlapping(vectors, measure("sc_weat", "doctor"), doctor={"images": ["i000", "i001"]})
    for row in (0, 1):
        groups = (vectors[group[group != row]] for group in (men, women))
        finding = pick(few, "sc_weat", subject=f"i{row:03d}", version="II")
        assert finding.value == pytest.approx(
            m.sc_weat(vectors[row], *groups, resampling=None).value
        )
    texts = overlapping(vectors, measure("association_score", "doctor", modalities=["ITA"]))
    assert not pick(texts, "association_score").excluded
