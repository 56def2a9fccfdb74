"""Targets that are members of the sets of attributes, too: none is compared with itself."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from audits.associations.association_world import asked, pick, rows_of, run, values, words
from equipoise import audits
from equipoise import metrics as m
from equipoise.core import AuditResult, DataError

N, DIMENSION = 200, 512
PAIR = ("doctor", "nurse")
CHOSEN: dict[str, Any] = {
    "men": {"images": {"gender": "Male"}, "words": ["man", "male", "he"]},
    "women": {"images": {"gender": "Female"}, "words": ["woman", "female", "she"]},
    "doctor": {"images": {"job": "doctor"}, "words": ["a photo of a doctor"]},
    "nurse": {"images": {"job": "nurse"}, "words": ["a photo of a nurse"]},
}


def people() -> pl.DataFrame:
    """A hundred men and women: doctors are 36 men and 4 women, nurses 4 and 36."""
    job = np.full(N, "other", dtype=object)
    men, women = np.arange(0, N, 2), np.arange(1, N, 2)
    job[men[:36]] = job[women[:4]] = "doctor"
    job[women[10:46]] = job[men[50:54]] = "nurse"
    gender = np.array(["Male", "Female"])[np.arange(N) % 2]
    return pl.DataFrame({"image": [f"i{k:03d}" for k in range(N)], "gender": gender, "job": job})


PEOPLE = people()


def noise(seed: int, n: int = N) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, DIMENSION)).astype(np.float32)


def where(**wanted: str) -> np.ndarray:
    found = np.ones(N, dtype=bool)
    for column, value in wanted.items():
        found &= (PEOPLE[column] == value).to_numpy()
    return np.flatnonzero(found)


def given(vectors: np.ndarray, *measure: dict[str, Any], **changes: Any) -> dict[str, Any]:
    embedded = {"images": {"file": vectors}, "words": {"file": noise(99, len(words()))}}
    data = {
        "images": {"table": PEOPLE, "id": "image", "kind": "image"},
        "words": {"table": words(), "id": "word", "kind": "text"},
    }
    asked_of: dict[str, Any] = {
        "data": data,
        "models": {"m": {"embeddings": embedded}},
        "sets": CHOSEN,
    }
    return values(*measure, **(asked_of | changes))


def audited(vectors: np.ndarray, *measure: dict[str, Any], **changes: Any) -> AuditResult:
    return audits.run(audits.parse_config(given(vectors, *measure, **changes)))


def notes(result: AuditResult) -> list[str]:
    return [*result.manifest.notes]


IN_IMAGES = {"modalities": ["II"]}
EVERY = (
    asked("association_score", *PAIR, **IN_IMAGES),
    asked("weat", *PAIR, **IN_IMAGES),
    asked("differential_association", *PAIR, **IN_IMAGES),
    asked("total_absolute_association", *PAIR, **IN_IMAGES),
    asked("mcas", *PAIR),
)


def test_noise_has_no_disparity_where_targets_are_members_of_the_attributes() -> None:
    ps: dict[str, list[float]] = {}
    for seed in range(8):
        result = audited(noise(seed), *EVERY)
        assert not [one for one in result.findings if one.verdict == "disparity"]
        for one in result.findings:
            if np.isfinite(one.p_value):
                ps.setdefault(one.metric, []).append(one.p_value)
    assert {*ps} >= {"association_score", "weat", "mcas", "total_absolute_association"}
    for metric, found in ps.items():
        # With self-pairs every one is as small as the permutations allow.
        assert np.median(found) > 0.1, metric
        assert min(found) > 0.2 / len(found) ** 2, metric


def test_a_planted_association_is_found_beside_shared_members() -> None:
    vectors = noise(0)
    lean = np.where(PEOPLE["gender"] == "Male", 1.0, -1.0)
    jobs = {"doctor": 1.0, "nurse": -1.0}
    # Of either gender, doctors look like men and nurses like women.
    vectors[:, 0] += 4.0 * np.array(
        [jobs.get(job, own) for job, own in zip(PEOPLE["job"], lean, strict=True)]
    )
    result = audited(vectors, *EVERY)
    for metric in ("weat", "total_absolute_association"):
        assert pick(result, metric).p_value < 0.01
    assert pick(result, "weat").verdict == "disparity"
    for subject, sign in (("doctor", 1), ("nurse", -1)):
        one = pick(result, "association_score", subject=subject, version="II")
        assert one.value * sign > 0.02
        assert one.p_value < 0.01


def test_what_is_left_out_is_what_the_metrics_are_not_given() -> None:
    vectors = noise(1)
    men, women = where(gender="Male"), where(gender="Female")
    doctors, nurses = where(job="doctor"), where(job="nurse")
    either = [*doctors, *nurses]
    result = audited(vectors, *EVERY)
    direct = m.weat(
        vectors[doctors],
        vectors[nurses],
        *(vectors[np.setdiff1d(group, either)] for group in (men, women)),
        resampling=None,
    )
    found = pick(result, "weat")
    assert found.value == pytest.approx(direct.value)
    assert {one.reason: one.count for one in found.excluded} == {
        "men: also a target": 40,
        "women: also a target": 40,
    }
    score = m.association_score(
        vectors[doctors],
        *(vectors[np.setdiff1d(group, doctors)] for group in (men, women)),
        resampling=None,
    )
    one = pick(result, "association_score", subject="doctor", version="II")
    assert one.value == pytest.approx(score.value)
    assert {e.reason: e.count for e in one.excluded} == {
        "men: also a target": 36,
        "women: also a target": 4,
    }


def test_each_member_of_a_target_leaves_itself_alone_out() -> None:
    vectors = noise(2)
    few = {**CHOSEN, "doctor": {"images": ["i000", "i001", "i180"]}}
    result = audited(vectors, asked("sc_weat", "doctor"), sets=few)
    men, women = where(gender="Male"), where(gender="Female")
    for row in (0, 1, 180):
        groups = (vectors[group[group != row]] for group in (men, women))
        direct = m.sc_weat(vectors[row], *groups, resampling=None)
        found = pick(result, "sc_weat", subject=f"i{row:03d}", version="II")
        assert found.value == pytest.approx(direct.value)
        # Against itself the value is above 1.
        assert abs(found.value) < 0.6


def test_shared_members_are_named_in_a_note() -> None:
    told = notes(audited(noise(3), *EVERY[:1]))
    assert (
        "36 of the 100 images of men are in doctor, too. None is compared with itself: they are "
        "left out of men where doctor is a target: i000, i002, i004, i006, i008, i010, i012, i014, "
        "i016, i018, …."
    ) in told
    assert (
        "4 of the 100 images of women are in doctor, too. None is compared with itself: they are "
        "left out of women where doctor is a target: i001, i003, i005, i007."
    ) in told


def test_few_members_that_are_left_are_told_of() -> None:
    doctors, nurses = ([f"i{k:03d}" for k in where(job=job)] for job in PAIR)
    sets = {
        **CHOSEN,
        "men": {"images": [*doctors[:30], "i190"]},
        "women": {"images": [*nurses[:30], "i191", "i193"]},
    }
    told = notes(audited(noise(3), asked("weat", *PAIR, **IN_IMAGES), sets=sets))
    assert (
        "Only 1 image is left in men where doctor and nurse are targets: no interval resamples it."
    ) in told
    assert (
        "Only 2 images are left in women where doctor and nurse are targets: intervals are too "
        "short."
    ) in told
    told = notes(audited(noise(3), asked("association_score", "doctor", **IN_IMAGES), sets=sets))
    assert [note for note in told if note.startswith("Only")] == [
        "Only 1 image is left in men where doctor is a target: no interval resamples it."
    ]
    assert not [note for note in notes(audited(noise(3), *EVERY[:1])) if note.startswith("Only")]


def test_members_of_both_sets_stay_where_images_meet_texts_alone() -> None:
    result = audited(noise(3), asked("association_score", "doctor", modalities=["ITA"]))
    assert not [note for note in notes(result) if "left out of men" in note]
    assert (
        "doctor and women share 4 of their members, which stay in both: i001, i003, i005, i007."
    ) in notes(result)
    assert not pick(result, "association_score").excluded


ONLY = {
    **CHOSEN,
    "men": {"images": {"gender": "Male", "job": "doctor"}},
}


@pytest.mark.parametrize("metric", ["association_score", "total_absolute_association"])
def test_attributes_that_are_all_targets_are_refused(metric: str) -> None:
    config = audits.parse_config(given(noise(4), asked(metric, "doctor"), sets=ONLY))
    for refusing in (audits.plan, audits.run):
        with pytest.raises(DataError) as error:
            refusing(config)
        assert error.value.problem.startswith("m: every usable image of the set 'men' is in doctor")


def test_units_of_a_target_with_other_images_in_the_attributes_are_counted() -> None:
    # i000 to i003 are of one person, and so on; i000 and i002 alone are images of the target.
    person = [f"person{k // 4:02d}" for k in range(N)]
    table = PEOPLE.with_columns(pl.Series("person", person))
    data = given(noise(5))["data"]
    data["images"] |= {"table": table, "unit": "person"}
    few = {**CHOSEN, "doctor": {"images": ["i000", "i002", "i004", "i006"]}}
    result = audited(noise(5), EVERY[0], sets=few, data=data)
    assert (
        "2 of the 2 units of doctor have other images in women, which stay there. Where images of "
        "one unit are alike, this alone draws doctor to women: person00, person01."
    ) in notes(result)
    assert not [note for note in notes(result) if "draws doctor to men" in note]
    assert not [note for note in notes(audited(noise(5), EVERY[0])) if "units" in note]


def test_words_that_are_targets_and_attributes_are_left_out_too() -> None:
    both = {"science": {"words": ["physics", "chemistry", "he"]}}
    result = run(asked("association_score", "science", modalities=["TT"]), sets=both)
    found = pick(result, "association_score")
    assert {one.reason: one.count for one in found.excluded} == {"men: also a target": 1}
    assert (
        "1 of the 4 texts of men are in science, too. None is compared with itself: they are left "
        "out of men where science is a target: he."
    ) in notes(result)
    assert len(rows_of("list", "men")) == 4
