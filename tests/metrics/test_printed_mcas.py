"""Printed numbers of Mandal 2024, chapters 6, 8 and 9, follow from each other."""

import math

import numpy as np
import pytest

from equipoise import metrics as m
from equipoise.metrics.rankings.subjects import SUMMARIES
from goldens import Golden

BOTH = ("DALL-E 2", "Stable Diffusion")
FOLDER = "papers/mandal_2024"
RELEASED = Golden(f"{FOLDER}/mcas_components.json")
LEANINGS = Golden(f"{FOLDER}/table_6_5.json")
CATEGORIES = Golden(f"{FOLDER}/table_6_6.json")
AMPLIFICATION = Golden(f"{FOLDER}/table_8_1.json")
SUMMARY = Golden(f"{FOLDER}/table_8_2.json")
DISTANCES = Golden(f"{FOLDER}/table_9_3.json")
MEN = {
    "CEO", "Engineer", "Doctor", "Farmer", "Programmer", "Baseball", "Rugby", "Cricket",
    "Car Fixing", "Farm Machinery", "Fishing Rod", "Theodolite", "Lathe", "Snowboard",
}  # fmt: skip
OFFSET = 0.0227


def unit(*cosines, place):
    """A unit vector with these cosines to the first axes, and the rest on an axis of its own."""
    vector = np.zeros((1, 6))
    vector[0, : len(cosines)] = cosines
    vector[0, place] = math.sqrt(1.0 - sum(cosine**2 for cosine in cosines))
    return vector


def mcas_of(ii, itp, ita, tt):
    """MCAS of embeddings that have these components."""
    image, text = np.eye(6)[:1], np.eye(6)[1:2]
    a_images, a_texts = unit(ii, itp, place=2), unit(ita, tt, place=3)
    b_images, b_texts = unit(place=4), unit(place=5)
    return m.mcas(image, text, a_images, a_texts, b_images, b_texts, resampling=None)


def test_released_components_give_mcas_diffusion_bias_and_amplification():
    rows = [row[model] for row in RELEASED["rows"].values() for model in BOTH]
    assert len(rows) == 56
    for ii, itp, ita, tt, total in rows:
        estimate = mcas_of(ii, itp, ita, tt)
        assert estimate.value == pytest.approx(total, abs=1e-6)
        parts = [part.value for part in estimate.parts]
        assert parts == pytest.approx([ii, itp, ita, tt], abs=1e-9)
        bias = m.diffusion_bias(estimate).value
        assert bias == pytest.approx(abs(abs(ii) - abs(tt)), abs=1e-6)
        gain = m.bias_amplification(estimate).value
        assert gain == pytest.approx(abs((itp + ita) / (2 * tt)), abs=1e-6)


def test_printed_leanings_are_the_released_ones_but_for_those_listed():
    released, printed = RELEASED["rows"], LEANINGS["rows"]
    slips = {
        (target, model)
        for target, row in released.items()
        for model in BOTH
        if abs(row[model][4] - printed[target][model]) > 0.001
    }
    assert slips == {
        ("Car_Fixing", "Stable Diffusion"), ("Farm_Machinery", "Stable Diffusion"),
        ("Shopping", "DALL-E 2"),
    }  # fmt: skip


def summarised(scores, categories, ddof=1):
    """Return mean, standard deviation, minimum and maximum by subject of a summary."""
    parts = m.score_summary(scores, categories, ddof=ddof).parts
    return {
        parts[start].subject: [part.value for part in parts[start : start + len(SUMMARIES)]]
        for start in range(0, len(parts), len(SUMMARIES))
    }


def test_categories_are_summarised_by_direction():
    """DALL-E 2 by the released numbers, as Table 6.5 has a slip in its scenes."""
    names = {key: row["category"] for key, row in LEANINGS["rows"].items()}
    summaries = summarised(
        {key: row["DALL-E 2"][4] for key, row in RELEASED["rows"].items()}, names, ddof=0
    )
    for category in ("Objects", "Scenes", "Sports"):
        numbers = [
            summaries[subject][place]
            for subject in (f"{category}, a", f"{category}, b", category)
            for place in (1, 0)
        ]
        assert numbers == pytest.approx(CATEGORIES["rows"]["DALL-E 2"][category], abs=0.0015)


@pytest.mark.parametrize("model", BOTH)
def test_the_summary_of_amplification_follows_by_the_declared_side(model):
    sides = {key: "male" if key in MEN else "female" for key in AMPLIFICATION["rows"]}
    printed = SUMMARY["rows"][model]
    for place, (column, start) in enumerate((("delta", 0), ("alpha", 4)), start=1):
        scores = {key: row[model][place] for key, row in AMPLIFICATION["rows"].items()}
        summaries = summarised(scores, sides)
        for side, subject in (("male", "male"), ("female", "female"), ("overall", "all")):
            name = side if side == "overall" else f"{side} dominated"
            mean, _, minimum, maximum = summaries[subject]
            low, high, printed_mean, _ = printed[name][start : start + 4]
            assert [minimum, maximum] == [low, high]
            recomputed = {"male": 1.70, "female": 11.04, "overall": 6.37}
            if (model, column) == ("Stable Diffusion", "alpha"):
                assert mean == pytest.approx(recomputed[side], abs=0.005)
                assert abs(mean - printed_mean) > 0.05
            else:
                # 9.98 is printed 10.0.
                assert mean == pytest.approx(printed_mean, abs=0.02)


def distance(similarity, composite, centre=None):
    """Distance of a target with a similarity to a further group and an MCAS, by `xmcas`."""
    # Everything on axes of its own; II alone makes the MCAS, and each pair has the similarity.
    image, text = np.eye(8)[:1], np.eye(8)[1:2]
    a_images, b_images = np.zeros((1, 8)), np.eye(8)[4:5]
    a_images[0, [0, 2]] = composite, math.sqrt(1 - composite**2)
    third = np.zeros((1, 8))
    third[0, [0, 1, 6]] = similarity, similarity, math.sqrt(1 - 2 * similarity**2)
    estimate = m.xmcas(
        image, text, a_images, np.eye(8)[3:4], b_images, np.eye(8)[5:6], third, third,
        offset=OFFSET, centre=centre, resampling=None,
    )  # fmt: skip
    wanted = "euclidean" if centre is None else "distance"
    [value] = [part.value for part in estimate.parts if part.metric == wanted]
    return estimate.value, value


@pytest.mark.parametrize("model", BOTH)
def test_printed_distances_fit_the_centre_with_exchanged_axes(model):
    exchanged, defined = [], []
    for row in DISTANCES["rows"].values():
        composite, theta, printed = row[model]
        similarity = math.tan(theta) * (1 - abs(composite) + OFFSET)
        angle, value = distance(similarity, composite, centre=(0.0, 1 / 3))
        assert angle == pytest.approx(theta, abs=1e-9)
        exchanged.append(abs(value - printed))
        defined.append(abs(distance(similarity, composite)[1] - printed))
    assert np.mean(exchanged) == pytest.approx(0.019, abs=0.001)
    assert max(exchanged) < 0.0535
    assert np.mean(defined) == pytest.approx(0.43, abs=0.02)


def test_numbers_of_several_encoders_are_averaged():
    rows = [(0.02, 0.01, 0.03, 0.02), (-0.05, 0.0, 0.01, 0.001)]
    estimates = [mcas_of(*row) for row in rows]
    biases = [m.diffusion_bias(estimate).value for estimate in estimates]
    gains = [m.bias_amplification(estimate).value for estimate in estimates]
    assert m.diffusion_bias(estimates).value == pytest.approx(np.mean(biases))
    assert m.bias_amplification(estimates).value == pytest.approx(np.mean(gains))
    zero = mcas_of(0.02, 0.01, 0.03, 0.0)
    assert math.isnan(m.bias_amplification([*estimates, zero]).value)


def test_the_interval_of_a_mean_over_equal_encoders_is_that_of_one():
    """Where the association of the images is far from 0; near 0 it is wider."""
    rng, axes = np.random.default_rng(1), (0, 0, 0, 0, 1, 1)
    sets = [
        rng.normal(size=(n, 8)) + 3 * np.eye(8)[axis]
        for n, axis in zip((30, 2) * 3, axes, strict=True)
    ]
    estimate = m.mcas(*sets)
    alone, averaged = (m.diffusion_bias(of).interval(0.95) for of in (estimate, [estimate] * 2))
    assert (averaged.low, averaged.high) == pytest.approx((alone.low, alone.high))


def test_the_offset_is_the_size_of_the_mean_where_it_is_asked():
    values = [-0.05, -0.03, 0.02]
    assert m.offset(values).value == pytest.approx(0.1 / 3)
    assert m.offset(values, size_of_mean=True).value == pytest.approx(0.02)


def test_bad_centres_and_empty_lists():
    from equipoise.core import InputError

    with pytest.raises(InputError, match="^centre"):
        distance(0.3, 0.1, centre=(0.0, math.nan))
    for function in (m.diffusion_bias, m.bias_amplification):
        with pytest.raises(InputError, match="^components"):
            function([])
