"""Images of prompts and sets: every one that was asked for has a row, and is made once."""

import numpy as np
import pyarrow as pa
import pytest

from equipoise.core import InputError, ModelError
from equipoise.counterfactuals import (
    GenerationSettings,
    generate,
    generate_prompts,
    generate_sets,
    read_generated,
    request_captions,
)
from equipoise.evidence import decode
from equipoise.models import Sampling, StepImage
from generator_models import Swatches, captions, prompts, swatch


def check_pictures(generated):
    """Each picture is what the model makes of its prompt and seed."""
    rows = {row["image_id"]: row for row in generated.table.to_pylist() if row["state"] == "image"}
    assert generated.pictures.ids.tolist() == sorted(rows)
    for place, name in enumerate(generated.pictures.ids):
        expected = swatch(rows[name]["prompt"], rows[name]["seed"])
        assert np.array_equal(decode(generated.pictures.read(place)), expected)


def test_prompts_have_images_with_seeds_of_their_own(tmp_path):
    generated = generate_prompts(
        prompts(), Swatches(), tmp_path, images=3, settings=GenerationSettings(part=4)
    )
    assert generated.computed == generated.table.num_rows == 15
    assert generated.table["prompt_id"].to_pylist() == [f"p{i // 3}" for i in range(15)]
    assert generated.table["candidate"].to_pylist() == [0, 1, 2] * 5
    assert generated.table["people"].to_pylist() == [i // 3 for i in range(15)]
    assert generated.table["image_id"][4].as_py() == "p1/001"
    assert {*generated.table["state"].to_pylist()} == {"image"}
    assert len({*generated.table["seed"].to_pylist()}) == 15
    assert min(generated.table["seed"].to_pylist()) >= 0
    check_pictures(generated)


def test_sets_share_seed_and_draws(tmp_path):
    model = Swatches()
    generated = generate_sets(captions(), model, tmp_path, candidates=5, shared_self=(0.2, 0.4))
    assert generated.table.num_rows == 4 * 6 * 5
    names = ("seed", "shared", "shared_self", "base", "caption_id")
    by_candidate = generated.table.group_by(["set", "candidate"]).aggregate(
        [(name, "count_distinct") for name in names]
    )
    counts = [{*by_candidate[f"{name}_count_distinct"].to_pylist()} for name in names]
    assert counts == [{1}, {1}, {1}, {1}, {6}]
    for name, low, high in (("shared", 0.1, 0.9), ("shared_self", 0.2, 0.4)):
        shares = generated.table[name].to_pylist()
        assert len({*shares}) == 20
        assert low <= min(shares) <= max(shares) <= high
    assert {"race", "gender", "subject", "caption"} <= {*generated.table.column_names}
    assert model.asked == [6] * 20  # never split, and 8 at once hold one set
    check_pictures(generated)


class Guided(Swatches):
    """Notes the prompts and the strength of guidance of each batch."""

    def generate_with(self, prompts, *, seeds, sampling, attention):
        self.strengths = [*getattr(self, "strengths", []), (sampling.guidance, {*prompts})]
        return super().generate_with(prompts, seeds=seeds, sampling=sampling, attention=attention)


def test_guidance_is_drawn_for_each_candidate(tmp_path):
    model = Guided()
    request = request_captions(captions(), 5, 0, (0.1, 0.9), None, guidance=(7.5, 15.0))
    generated = generate(request, model, tmp_path)
    by_candidate = generated.table.group_by(["set", "candidate"]).aggregate(
        [("guidance", "min"), ("guidance", "max"), ("prompt", "distinct")]
    )
    rows = by_candidate.to_pylist()
    assert len({row["guidance_min"] for row in rows}) == len(rows) == 20
    assert all(7.5 <= row["guidance_min"] == row["guidance_max"] <= 15 for row in rows)
    strengths = sorted(row["guidance_min"] for row in rows)
    assert strengths[0] < 9
    assert strengths[-1] > 13
    # The model was given what the table says.
    drawn = {row["guidance_min"]: {*row["prompt_distinct"]} for row in rows}
    assert dict(model.strengths) == drawn
    check_pictures(generated)
    # Shares and noise are those of images with one strength.
    same = generate_sets(captions(), Swatches(), tmp_path, candidates=5)
    for name in ("seed", "shared", "base"):
        assert same.table[name] == generated.table[name]
    assert {*same.table["guidance"].to_pylist()} == {None}


def test_more_candidates_leave_existing_images(tmp_path):
    generate_sets(
        captions(), Swatches(), tmp_path, candidates=3, settings=GenerationSettings(part=8)
    )
    more = generate_sets(
        captions(), Swatches(), tmp_path, candidates=5, settings=GenerationSettings(part=8)
    )
    assert more.computed == 2 * 24
    fewer = generate_sets(
        captions(), Swatches(), tmp_path, candidates=3, settings=GenerationSettings(part=8)
    )
    assert (fewer.computed, fewer.table.num_rows) == (0, 72)
    check_pictures(more)
    # Blocks of several candidates: what is made anew is less than a block.
    generate_prompts(
        prompts(2), Swatches(), tmp_path, images=20, settings=GenerationSettings(part=10)
    )
    generated = generate_prompts(
        prompts(2), Swatches(), tmp_path, images=33, settings=GenerationSettings(part=10)
    )
    assert 2 * 13 <= generated.computed < 2 * 13 + 10


def test_refusals_are_a_state_and_no_failure(tmp_path):
    model = Swatches(act=lambda prompt, image: None if "Black" in prompt else image)
    generated = generate_sets(
        captions(2), model, tmp_path, candidates=2, settings=GenerationSettings(max_failures=0.0)
    )
    refused = [row for row in generated.table.to_pylist() if row["state"] == "refused"]
    assert {row["race"] for row in refused} == {"Black"}
    assert (len(refused), len(generated.pictures)) == (8, 16)
    assert {row["reason"] for row in refused} == {"the model refused to show it"}
    check_pictures(generated)


def fails_on(word):
    def act(prompt, image):
        if word in prompt:
            raise RuntimeError(f"no {word}")
        return image

    return Swatches(act=act)


def test_too_many_failures_stop_the_run_and_are_asked_for_again(tmp_path):
    with pytest.raises(
        ModelError,
        match=r"python:generator_models:swatches failed on 6 of 48 images, and max_failures allows "
        r"2; the first is 'race-gender/a-photo-of-a/umpire/asian/male/000': no umpire",
    ):
        generate_sets(
            captions(4),
            fails_on("umpire"),
            tmp_path,
            candidates=2,
            settings=GenerationSettings(part=6),
        )
    generated = generate_sets(
        captions(4), Swatches(), tmp_path, candidates=2, settings=GenerationSettings(part=6)
    )
    assert generated.computed == 42
    assert {*generated.table["state"].to_pylist()} == {"image"}


def test_a_model_that_only_fails_stops_at_the_first_part(tmp_path):
    model = fails_on("photo")
    with pytest.raises(ModelError, match=r"failed on 4 of 40 images.*'p0/000': no photo$"):
        generate_prompts(
            prompts(40), model, tmp_path, settings=GenerationSettings(part=4, max_failures=1.0)
        )
    assert sum(model.asked) == 4 + 4


def test_copies_on_several_devices_make_the_same(tmp_path):
    single = generate_sets(
        captions(), Swatches(), tmp_path / "one", candidates=6, settings=GenerationSettings(part=12)
    )
    copies = [Swatches() for _ in range(3)]
    three = generate_sets(
        captions(), copies, tmp_path / "three", candidates=6, settings=GenerationSettings(part=12)
    )
    assert three.table.equals(single.table)
    assert three.inputs == single.inputs
    assert sum(map(len, (copy.asked for copy in copies))) == 24


@pytest.mark.parametrize(
    "settings",
    [
        {"candidates": 0},
        {"shared": (0.9, 0.1)},
        {"shared_self": 1.5},
        {"shared": None, "shared_self": 0.5},
    ],
)
def test_settings_out_of_range(settings, tmp_path):
    with pytest.raises(InputError):
        generate_sets(captions(1), Swatches(), tmp_path, **settings)


@pytest.mark.parametrize(
    "table",
    [
        ["a"],
        pa.table({"prompt_id": ["a"]}),
        prompts(3)[:0],
        pa.table({"prompt_id": ["a", "b"], "prompt": ["x", None]}),
        pa.table({"prompt_id": ["a", "b", "a"], "prompt": ["x", "y", "z"]}),
        pa.table({"prompt_id": ["a"], "prompt": ["x"], "seed": [1]}),
    ],
)
def test_tables_that_cannot_be_used(table, tmp_path):
    with pytest.raises(InputError):
        generate_prompts(table, Swatches(), tmp_path)


def test_draws_depend_on_names_alone(tmp_path):
    all_sets = generate_sets(
        captions(4),
        Swatches(),
        tmp_path,
        candidates=4,
        seed=3,
        settings=GenerationSettings(part=10),
    )
    few = generate_sets(
        captions(2),
        Swatches(),
        tmp_path,
        candidates=2,
        seed=3,
        settings=GenerationSettings(part=64),
    )
    columns = ["image_id", "prompt", "seed", "shared", "base"]
    by_id = {row["image_id"]: row for row in all_sets.table.select(columns).to_pylist()}
    for row in few.table.select(columns).to_pylist():
        assert row == by_id[row["image_id"]]
    other = generate_sets(captions(2), Swatches(), tmp_path, candidates=2, seed=4)
    assert not {*other.table["seed"].to_pylist()} & {*few.table["seed"].to_pylist()}


def test_captions_that_share_nothing_have_images_of_their_own(tmp_path):
    class Plain:
        """A generator without control of its attention."""

        def __init__(self):
            self.info, self.generate = Swatches().info, Swatches().generate

    generated = generate_sets(captions(), Plain(), tmp_path, candidates=3, shared=None)
    rows = generated.table.to_pylist()
    assert len(rows) == len({row["seed"] for row in rows}) == 4 * 6 * 3
    assert {(row["shared"], row["base"]) for row in rows} == {(None, None)}
    assert {row["set"] for row in rows} == {*captions().table["set"].to_pylist()}
    check_pictures(generated)


class Developing(Swatches):
    """Shows a swatch that brightens with each step; its latent is the number of the step."""

    def generate_steps(self, prompts, *, seeds, sampling, at):
        finals = self.generate(prompts, seeds=seeds, sampling=sampling)
        return [
            None
            if final is None
            else tuple(
                StepImage(final // (sampling.steps - step + 1), np.full((1, 2, 2), step, "f4"))
                for step in (*at, sampling.steps)
            )
            for final in finals
        ]


def stepped(store, model, at_steps, images=2, **settings):
    return generate_prompts(
        prompts(3), model, store, images=images, at_steps=at_steps,
        settings=GenerationSettings(sampling=Sampling(steps=4), part=4, **settings),
    )  # fmt: skip


def test_images_at_steps_are_stored_once(tmp_path):
    model = Developing()
    generated = stepped(tmp_path, model, [1, 3])
    assert (generated.computed, sum(model.asked)) == (6, 6)
    assert generated.steps.keys() == {1, 3}
    assert {step: {*row.ravel()} for step, row in generated.latents.items()} == {
        1: {1.0}, 3: {3.0}, None: {4.0}
    }  # fmt: skip
    final, third = generated.pictures, generated.steps[3]
    assert third.ids.tolist() == final.ids.tolist()
    for place in range(6):
        pixels = [decode(pictures.read(place)) for pictures in (final, third)]
        assert np.array_equal(pixels[0] // 2, pixels[1])
    # The final images are those of a generation without steps, which lies elsewhere.
    plain = stepped(tmp_path, model, [])
    assert [plain.pictures.read(place) for place in range(6)] == [
        final.read(place) for place in range(6)
    ]
    assert plain.folder != generated.folder
    again = stepped(tmp_path, Developing(), [1, 3])
    assert again.computed == 0
    assert read_generated(again.folder).steps.keys() == {1, 3}
    more = stepped(tmp_path, Developing(), [1, 3], images=4)
    assert more.computed < 12


def test_refused_images_have_no_steps(tmp_path):
    model = Developing(act=lambda prompt, image: None if "1 people" in prompt else image)
    generated = stepped(tmp_path, model, [2])
    assert len(generated.steps[2].ids) == len(generated.latents[2]) == 4


@pytest.mark.parametrize("at_steps", [[0], [5], [3, 1], [2, 2]])
def test_steps_that_a_generation_lacks(at_steps, tmp_path):
    with pytest.raises(InputError):
        stepped(tmp_path, Developing(), at_steps)


def test_a_model_that_shows_no_steps(tmp_path):
    with pytest.raises(ModelError) as error:
        stepped(tmp_path, Swatches(), [1])
    assert "swatches" in str(error.value)
