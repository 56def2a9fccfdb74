"""Generators before and after: what a probe reads, and what a recipe changes."""

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from equipoise.cli.app import run as command
from equipoise.core import ConfigError, InputError, ModelError
from equipoise.mitigate import (
    BalancedPrompts,
    GeneratedTest,
    LearnedPrompt,
    Training,
    cross_fit,
)
from equipoise.mitigate.generated import lie_within
from equipoise.mitigate.trainable import trainable
from equipoise.models import Sampling, load_generator
from equipoise.models.wrapped import SETTINGS
from equipoise.planted.scenes import diffusion
from equipoise.planted.scenes.embed import WEIGHTS, load_clip
from equipoise.planted.scenes.render import SUBJECTS
from mitigate.scenes import TEXTS, sets
from mitigate.test_running import write
from painters import Painter

SOME = SUBJECTS[:8]
GAP = ("share_gap", "hue")


@pytest.fixture(scope="module")
def probe():
    return load_clip("null")


def measured_by(probe, store, count=16):
    texts = {name: TEXTS[name] for name in SOME}
    images = sets(seed=2, per_subject=1).of(SOME)
    return GeneratedTest(images, texts, probe, Sampling(), count, store)


def test_shares_of_a_painter_are_those_that_it_has(probe, tmp_path):
    measured = measured_by(probe, tmp_path).measure(Painter(red=0.5))
    # Half of the images, and a sixth of the other half, are red: 5 / 12 more than a sixth.
    assert np.mean([*measured.bias[GAP].values()]) == pytest.approx(5 / 12, abs=0.05)
    assert np.mean([*measured.utility["accuracy", "generated images"].values()]) == 1.0
    units = [*measured.utility["image_precision", "generated images"].values()]
    assert len(units) == 8 * 3 * 16
    assert np.mean(units) > 0.9


def test_chance_is_what_equal_shares_give(probe, tmp_path):
    measured = measured_by(probe, tmp_path).measure(Painter(red=0.0))
    for attribute in ("hue", "frame"):
        key = ("share_gap", attribute)
        gap, chance = (
            np.mean([*measures[key].values()]) for measures in (measured.bias, measured.chance)
        )
        assert gap == pytest.approx(chance, rel=0.4)


def test_refused_images_count_nowhere(probe, tmp_path):
    measured = measured_by(probe, tmp_path, count=4).measure(Painter(refused="picture"))
    right = measured.utility["accuracy", "generated images"]
    assert len(right) == 8 * 3 * 4
    assert sum(np.isnan([*right.values()])) == 8 * 4


def test_a_probe_is_held_against_labels(probe, tmp_path):
    test = measured_by(probe, tmp_path)
    assert test.errors() == {"subject": 0.0, "hue": 0.0, "frame": 0.0}
    test.images.attributes["hue"][:] = "red"
    assert test.errors()["hue"] == pytest.approx(5 / 6)


def test_within_is_nearer_than_the_third_neighbour():
    angles = np.deg2rad([0.0, 1.0, 2.0, 3.0, 90.0])
    reference = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    sample_angles = np.deg2rad([-2.9, 4.9, 45.0, -100.0])
    vectors = np.stack([np.cos(sample_angles), np.sin(sample_angles)], axis=1)
    # That at 90 degrees has its third neighbour at 1 degree, 89 away.
    assert lie_within(vectors, reference).tolist() == [True, True, True, False]


def test_balanced_prompts_reach_chance_on_withheld_subjects(probe, tmp_path):
    texts = {name: TEXTS[name] for name in SOME}
    test = measured_by(probe, tmp_path)
    assessment = cross_fit(Painter(), [BalancedPrompts()], texts, test.images, test, count=2)
    rows = {(row.measure, row.about): row for row in assessment.rows}
    hue = rows[GAP]
    assert hue.before > 0.6
    assert hue.after == pytest.approx(hue.floor, rel=0.3)
    assert hue.reaches
    assert rows["accuracy", "generated images"].after == 1.0
    # The painter prefers no frame.
    assert rows["share_gap", "frame"].share_reason
    assert assessment.outcomes[0].conclusion == "transfers"


def test_captions_that_name_one_combination_teach_nothing(tmp_path):
    subject_texts = TEXTS[SOME[0]]
    alone = Training(
        (
            type(subject_texts)(
                subject_texts.subject,
                subject_texts.neutral,
                subject_texts.attributed[:1],
                subject_texts.values[:1],
            ),
        )
    )
    with pytest.raises(InputError):
        BalancedPrompts().fit(Painter(), alone, tmp_path / "out")


def test_embeddings_are_moved_in_stable_diffusion_alone(tmp_path):
    learned = Training(tuple(TEXTS[name] for name in SOME))
    model = BalancedPrompts(strength=0.5).fit(Painter(), learned, tmp_path / "out")
    with pytest.raises(ModelError):
        model.generate(["a solid star"], seeds=[1], sampling=Sampling())


CONFIG = f"""
model: "python:painters:painter"
generation: {{probe: "hf:{WEIGHTS / "clip-null"}", images: 8}}
images: {{table: sets.csv, root: photos, attributes: [hue, frame]}}
prompts: {{table: prompts.csv}}
recipes:
  drawn: {{recipe: balanced_prompts}}
withheld: 0.75
output: mitigated
device: cpu
"""


@pytest.fixture
def project(tmp_path):
    image_sets, rows = sets(seed=2).of(SOME), []
    (tmp_path / "photos").mkdir()
    for number in range(len(image_sets)):
        Image.fromarray(image_sets.images[number]).save(tmp_path / "photos" / f"{number:04d}.png")
        about = {"image_id": f"i{number:04d}", "path": f"{number:04d}.png"}
        columns = {
            name: getattr(image_sets, name)[number] for name in ("subject", "set", "caption")
        }
        values = {name: values[number] for name, values in image_sets.attributes.items()}
        rows.append(about | columns | values)
    write(tmp_path / "sets.csv", rows)
    prompts = [{"subject": s, "prompt": text} for s in SOME for text in TEXTS[s].neutral]
    write(tmp_path / "prompts.csv", prompts)
    (tmp_path / "c.yaml").write_text(CONFIG)
    return tmp_path


def test_the_command_mitigates_a_generator(project, capsys):
    assert command(["mitigate", str(project / "c.yaml"), "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    hue = next(row for row in output["rows"] if row["about"] == "hue")
    assert hue["after"] < 0.3
    assert hue["before"] > 0.6
    assert {row["measure"] for row in output["rows"] if row["role"] == "utility"} == {
        "accuracy", "prompt_similarity", "image_precision",
    }  # fmt: skip
    model = load_generator(output["recipes"][0]["model"], trust_remote_code=True)
    images = model.generate(["a solid star"] * 2, seeds=[1, 2], sampling=Sampling())
    assert [image.shape for image in images] == [(32, 32, 3)] * 2
    # The images are there: what is made again is read.
    assert len([*(project / "mitigated" / "images" / "generations").iterdir()]) == 2


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("balanced_prompts", "prompt_ensemble", "recipes.drawn"),
        ("generation: ", "# ", "recipes.drawn"),
        ("withheld", "retrieval: {a: {table: sets.csv}}\nwithheld", "retrieval"),
    ],
)
def test_a_configuration_of_the_other_kind_is_refused(project, old, new, key):
    from equipoise.audits.config import load_as
    from equipoise.mitigate.config import Config

    (project / "c.yaml").write_text(CONFIG.replace(old, new))
    with pytest.raises(ConfigError, match=key):
        load_as(project / "c.yaml", Config)


SMALL = {"steps": 2, "batch": 12, "sampling_steps": 2, "last_steps": 2, "looks": 2}


def training(probe):
    return replace(Training(*(tuple(TEXTS[s] for s in names) for names in (SOME[:3], SOME[3:5]))),
                   teacher=probe)  # fmt: skip


@pytest.fixture(scope="module")
def pipeline():
    return load_generator(f"diffusers:{diffusion.WEIGHTS}", device="cpu")


@pytest.mark.parametrize("loss", ["shares", "mcas"])
def test_a_prompt_is_learned_and_loads_by_name(pipeline, probe, tmp_path, loss):
    recipe = LearnedPrompt(loss=loss, patience=4, **SMALL)
    model = recipe.fit(pipeline, training(probe), tmp_path / "learned")
    record = json.loads((tmp_path / "learned" / SETTINGS).read_text())["record"]
    losses = [value for _, value in record["validation"]]
    assert len(losses) == 3
    assert record["kept_step"] == int(np.argmin(losses))
    few = {"seeds": [1, 2], "sampling": Sampling(steps=3, guidance=1.0)}
    for prompts, same in (
        (["a solid star"] * 2, record["kept_step"] == 0),
        (["a red star"] * 2, True),
    ):
        pair = (generator.generate(prompts, **few) for generator in (pipeline, model))
        assert np.array_equal(*pair) == same
    again = recipe.fit(pipeline, training(probe), tmp_path / "again")
    np.testing.assert_array_equal(again.shifts, model.shifts)


def test_shifts_of_a_combination_are_the_sum_of_those_of_its_values(pipeline, probe, tmp_path):
    learned = LearnedPrompt(**SMALL | {"steps": 1, "looks": 1}, name="learned")
    alone = replace(training(probe), validation=())
    shifts = learned.fit(pipeline, alone, tmp_path / "learned").shifts[:, 0]
    # Combinations of two frames and six hues: one frame less the other is the same for each hue.
    differences = shifts[:6] - shifts[6:]
    np.testing.assert_allclose(
        differences, np.broadcast_to(differences[:1], differences.shape), atol=1e-6
    )
    assert np.abs(shifts).max() > 0


def test_a_learned_prompt_needs_a_probe(pipeline, tmp_path):
    with pytest.raises(InputError):
        LearnedPrompt(**SMALL).fit(pipeline, training(None), tmp_path / "learned")


def test_pixels_have_gradients_and_the_vectors_of_images(probe):
    torch = pytest.importorskip("torch")
    pixels = sets(seed=2).images[:4]
    levels = torch.tensor(pixels.transpose(0, 3, 1, 2) / 255.0, dtype=torch.float32)
    levels.requires_grad_()
    vectors = trainable(probe).pixels(levels)
    expected = torch.tensor(probe.embed_images([*pixels]))
    torch.testing.assert_close(vectors, expected, atol=1e-4, rtol=1e-4)
    vectors.sum().backward()
    assert levels.grad.abs().sum() > 0
