"""Matched prompts: what is learned from sets, and what is refused."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.cli.mitigation_world import SAID
from equipoise.core.errors import InputError
from equipoise.mitigate import MatchedPrompts, SubjectTexts
from equipoise.mitigate.embedding import queries_of
from equipoise.models.wrapped import unit_vectors
from mitigate.scenes import LEARNED, TEXTS, WATCHED, WITHHELD, base, sets, training


@pytest.fixture(scope="module")
def clip() -> Any:
    return base()


@pytest.mark.parametrize("directions", [True, False])
def test_neutral_prompts_of_unseen_subjects_lean_less(
    clip: Any, tmp_path: Path, directions: bool
) -> None:
    recipe = MatchedPrompts(said=SAID, directions=directions)
    made: Any = recipe.fit(clip, training(), tmp_path / "made")
    images = list(sets(seed=2, per_subject=4).of(WITHHELD).images)
    by_set = np.arange(len(images)).reshape(len(WITHHELD), 4, 12)
    spread = []
    for model in (made, clip):
        vectors, prompts = (
            unit_vectors(model.embed_images(images)),
            [TEXTS[s].neutral for s in WITHHELD],
        )
        scores = vectors @ queries_of(model, prompts).T * model.info.scale
        own = np.stack([scores[by_set[place], place] for place in range(len(WITHHELD))])
        spread.append(own.mean(axis=1).std(axis=1).mean())
    assert spread[0] < 0.5 * spread[1]


def test_texts_that_name_a_value_keep_their_logits(clip: Any, tmp_path: Path) -> None:
    made: Any = MatchedPrompts(said=SAID).fit(clip, training(), tmp_path / "made")
    images, named = list(sets().images[:24]), [*TEXTS[WITHHELD[0]].attributed[:4], "no such thing"]
    logits = [
        model.info.scale
        * unit_vectors(model.embed_images(images))
        @ unit_vectors(model.embed_texts(named)).T
        for model in (made, clip)
    ]
    np.testing.assert_allclose(*logits, atol=1e-4)


def test_the_record_says_what_was_learned(clip: Any, tmp_path: Path) -> None:
    MatchedPrompts(said=SAID).fit(clip, training(), tmp_path / "made")
    settings = json.loads((tmp_path / "made" / "equipoise_model.json").read_text())
    record = settings["record"]
    assert record["weights"] == settings["matching"]["weights"]
    assert sum(record["weights"]) == pytest.approx(1.0)
    assert {*record["told_right"]["frame"].items()} == {("level", 1.0), ("upright", 1.0)}
    assert min(record["told_right"]["hue"].values()) == 1.0
    assert record["names_a_value"] == []
    assert record["inputs"]["subjects"] == sorted((*LEARNED, *WATCHED))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"hue": SAID["hue"]}, "said: nothing of 'frame', an attribute of the images; expected"),
        ({**SAID, "age": ("a {value} {}",)}, "said: 'age' is no attribute of the images (hue, "),
        (
            {**SAID, "hue": ("a {}",)},
            "said.hue: 'a {}' does not hold {}, for the subject",
        ),
        ({**SAID, "hue": "a {value} {}"}, "said.hue: 'a {value} {}' does not hold {}, for"),
    ],
)
def test_said_is_of_the_attributes_of_the_images(
    clip: Any, tmp_path: Path, said: Any, message: str
) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        MatchedPrompts(said=said).fit(clip, training(), tmp_path / "made")


def test_a_value_without_a_caption_is_an_error(clip: Any, tmp_path: Path) -> None:
    def without(one: SubjectTexts) -> SubjectTexts:
        kept = [row for row, named in enumerate(one.values) if named["hue"] != "red"]
        texts = tuple(one.attributed[row] for row in kept)
        return SubjectTexts(one.subject, one.neutral, texts, tuple(one.values[r] for r in kept))

    given = training()
    told = tuple(map(without, given.texts)), tuple(map(without, given.validation))
    message = (
        f"^no caption of {LEARNED[0]!r} names hue 'red', which images show. To do: give captions "
        "of every value, or templates in `said`$"
    )
    with pytest.raises(InputError, match=message):
        MatchedPrompts().fit(
            clip, replace(given, texts=told[0], validation=told[1]), tmp_path / "made"
        )
