"""The subspace of an attribute: which centre finds it, and what removing it costs."""

import json

import numpy as np
import pytest

from equipoise.core import InputError, ModelError
from equipoise.metrics import retrieval_entropy
from equipoise.mitigate import ImageSets, SubjectTexts, SubspaceProjection, Training, find_subspace
from equipoise.models import load_model
from equipoise.models.wrapped import unit_vectors
from equipoise.planted.scenes.captions import caption, neutral_prompts
from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS
from equipoise.planted.scenes.sets import render_balanced

CELLS = [(subject, hue, frame) for subject in SUBJECTS for hue in HUES for frame in FRAMES]


def texts(subject):
    cells = [cell for cell in CELLS if cell[0] == subject]
    values = tuple({"hue": hue, "frame": frame} for _, hue, frame in cells)
    return SubjectTexts(
        subject, neutral_prompts(subject), tuple(caption(*c) for c in cells), values
    )


@pytest.fixture(scope="module")
def training():
    scenes = render_balanced(1, seed=901)
    table = {name: column.astype(object) for name, column in scenes.table().items()}
    rows = zip(table["subject"], table["hue"], table["frame"], strict=True)
    captions = np.array([caption(*row) for row in rows], dtype=object)
    attributes = {name: table[name] for name in ("hue", "frame")}
    images = ImageSets(scenes.images, table["subject"], table["subject"], captions, attributes)
    return Training(tuple(map(texts, SUBJECTS)), images=images)


@pytest.fixture(scope="module")
def measure():
    scenes = render_balanced(3, seed=902)
    table = scenes.table()
    subject = np.array([SUBJECTS.index(name) for name in table["subject"]])
    rows = zip(table["subject"], table["hue"], table["frame"], strict=True)
    own = np.array([CELLS.index(row) for row in rows])

    def of(model):
        """Return entropy of the frame, accuracy and recall with and without the frame."""
        images = unit_vectors(model.embed_images(scenes.images))
        prompts = [unit_vectors(model.embed_texts(neutral_prompts(name))) for name in SUBJECTS]
        neutral = unit_vectors([vectors.mean(axis=0) for vectors in prompts])
        captions = unit_vectors(model.embed_texts([caption(*cell) for cell in CELLS]))
        unnamed = unit_vectors(model.embed_texts([caption(*cell[:2]) for cell in CELLS[::2]]))
        shares = retrieval_entropy(
            (images * neutral[subject]).sum(axis=1), table["frame"], k=12,
            queries=table["subject"], resampling=None,
        )  # fmt: skip
        return {
            "entropy": shares.value,
            "accuracy": ((images @ neutral.T).argmax(axis=1) == subject).mean(),
            "named": ((images @ captions.T).argmax(axis=1) == own).mean(),
            "unnamed": ((images @ unnamed.T).argmax(axis=1) == own // 2).mean(),
        }

    return of


@pytest.fixture(scope="module")
def before(clip, measure):
    return measure(clip)


def fit(clip, training, out, **options):
    return SubspaceProjection(attributes=("frame",), **options).fit(clip, training, out)


@pytest.mark.parametrize("side", ["images", "both"])
def test_one_paired_direction_removes_the_attribute_at_no_cost(
    side, clip, training, measure, before, tmp_path
):
    after = measure(fit(clip, training, tmp_path / "made", of=side))
    assert before["entropy"] == pytest.approx(0.445, abs=0.001)
    assert after["entropy"] >= 0.90
    assert after["accuracy"] >= before["accuracy"] - 0.005
    assert after["unnamed"] >= before["unnamed"] - 0.005
    # A caption that names the frame is told from the other frame's by nothing but chance.
    assert after["named"] == pytest.approx(1 / len(FRAMES), abs=0.05)


def test_directions_centred_by_group_cost_accuracy_and_leave_the_attribute(
    clip, training, measure, before, tmp_path
):
    after = measure(fit(clip, training, tmp_path / "made", centre="group"))
    assert after["entropy"] < 0.7
    assert after["accuracy"] < before["accuracy"] - 0.3


def test_texts_lose_their_direction_and_images_stay(clip, training, tmp_path):
    fitted = fit(clip, training, tmp_path / "made", of="texts")
    image, named = training.images.images[:2], [caption(*cell) for cell in CELLS[:2]]
    np.testing.assert_array_equal(fitted.embed_images(image), clip.embed_images(image))
    first, second = unit_vectors(clip.embed_texts(named))
    one, other = unit_vectors(fitted.embed_texts(named))
    assert one @ other > first @ second
    again = load_model(fitted.info.name, device="cpu", dtype="float32")
    np.testing.assert_array_equal(again.embed_texts(named), fitted.embed_texts(named))
    settings = tmp_path / "made" / "equipoise_model.json"
    damaged = json.loads(settings.read_text()) | {"subspace": {"texts": 2}}
    settings.write_text(json.dumps(damaged))
    with pytest.raises(ModelError):
        load_model(fitted.info.name)


def test_a_paired_direction_is_the_difference_and_a_group_centred_one_is_not():
    """Pairs differ along the first axis; members of a group vary along the second."""
    random = np.random.default_rng(0)
    common = np.repeat(random.normal(size=40) * 3, 2)
    side = np.tile([1.0, -1.0], 40)
    vectors = np.stack([side, common, random.normal(size=80) * 0.01], axis=1)
    groups = np.where(side > 0, "a", "b").astype(object)
    pairs = np.repeat(np.arange(40), 2).astype(object)
    assert abs(find_subspace(vectors, groups, pairs)[0] @ [1, 0, 0]) > 0.999
    assert abs(find_subspace(vectors, groups, centre="group")[0] @ [0, 1, 0]) > 0.999
    for row in find_subspace(vectors, groups, centre="group"):
        assert abs(row @ [1, 0, 0]) < 0.01


def test_missing_pairs_are_refused(clip, training, tmp_path):
    vectors, groups = np.eye(4), np.array(["a", "b", "a", "b"], dtype=object)
    with pytest.raises(InputError):
        find_subspace(vectors, groups)
    with pytest.raises(InputError):
        find_subspace(vectors, groups, groups)
    with pytest.raises(InputError):
        SubspaceProjection(attributes=("age",)).fit(clip, training, tmp_path / "made")
