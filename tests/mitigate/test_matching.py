"""Matched prompts: what is learned from sets, and what is refused."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from equipoise.cli.mitigation_world import SAID
from equipoise.core.errors import InputError
from equipoise.mitigate import ImageSets, MatchedPrompts, SubjectTexts
from equipoise.mitigate.embedding import queries_of
from equipoise.mitigate.matching import _weights
from equipoise.models.ensembles import Ensemble, Rule
from equipoise.models.matching import Matching, Said, unit_vectors
from mitigate.scenes import LEARNED, TEXTS, WATCHED, WITHHELD, base, sets, training

HUES = ("red", "blue")


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


def test_captions_that_name_fewest_attributes_are_used(clip: Any, tmp_path: Path) -> None:
    made: Any = MatchedPrompts().fit(clip, training(), tmp_path / "made")
    hues = {one.value: one.rules for one in made.wrapping.matching.attributes["hue"]}
    captions = {caption for rule in hues["red"] for caption in rule.attributed}
    assert captions == {
        f"{opening} red {{}} with {frame} bars"
        for opening in ("a", "a picture of a", "this is a")
        for frame in ("level", "upright")
    }


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


@pytest.mark.parametrize(
    ("value", "said"), [("{x}", "a {x} judge"), ("{value}", "a {value} judge")]
)
def test_braces_in_a_value_stand_for_themselves(value: str, said: str) -> None:
    known = [SubjectTexts("nurse", ("a nurse",), ("no caption",), ({},))]
    (one,) = MatchedPrompts(said={"hue": ("a {value} {}",)})._spoken("hue", [value], known)
    assert Ensemble(one.rules, ()).said("a judge") == (said,)


@pytest.mark.parametrize(("value", "template"), [("{}", "a {value} {}"), ("{", "a {value}} {}")])
def test_a_value_that_reads_as_the_place_of_a_subject_is_refused(value: str, template: str) -> None:
    known = [SubjectTexts("nurse", ("a nurse",), ("no caption",), ({},))]
    message = "^'a {} nurse', of 'nurse', holds {}, which stands for the subject in templates; "
    with pytest.raises(InputError, match=message):
        MatchedPrompts(said={"hue": (template,)})._spoken("hue", [value], known)
    given = SubjectTexts("nurse", ("a nurse",), ("a {} nurse",), ({"hue": value},))
    with pytest.raises(InputError, match=message):
        MatchedPrompts()._spoken("hue", [value], [given])


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


def _planted(lean: dict[str, float], seed: int = 0) -> tuple[Any, ...]:
    """Return a model whose prompts lean to red, and whose captions lean away, by so much.

    Images of a subject are its axis, and an axis of "red" that is +1 or -1; the hue itself is told
    on a third kind of axis. Texts are the axis of their subject, and of "red" what they lean.
    """
    subjects, d = ("nurse", "clerk", "baker"), 8
    rng = np.random.default_rng(seed)

    def read(texts: Sequence[str]) -> Any:
        found = np.zeros((len(texts), d))
        for row, text in enumerate(texts):
            found[row, subjects.index(text.split()[-1])] = 1.0
            kind = next((one for one in HUES if one in text), "neutral")
            found[row, 3] = lean[kind]
        return found.astype(np.float32)

    vectors, labels, named, owner = [], [], [], []
    for place, subject in enumerate(subjects):
        for number in range(6):
            nuisance = rng.standard_normal(2) * 0.1
            for hue, sign in zip(HUES, (1.0, -1.0), strict=True):
                one = np.zeros(d)
                one[place], one[3], one[4], one[6:] = 1.0, sign, sign, nuisance
                vectors.append(one)
                labels.append(hue)
                named.append(f"{subject}-{number}")
                owner.append(subject)
    objects = [np.array(column, dtype=object) for column in (owner, named, named)]
    images = ImageSets(list(range(len(vectors))), *objects, {"hue": np.array(labels, dtype=object)})
    texts = [SubjectTexts(one, (f"a {one}",), (f"a red {one}",), ({},)) for one in subjects]
    gate = np.zeros((d, 2), dtype=np.float32)
    gate[4] = 1.0, -1.0
    hues = tuple(Said(one, (Rule("a {}", (f"a {one} {{}}",)),)) for one in HUES)
    none = np.zeros((0, d), dtype=np.float32)
    made = Matching({"hue": hues}, (0.5, 0.5), gate, np.zeros(2, dtype=np.float32), none)
    return made, SimpleNamespace(embed_texts=read), unit_vectors(vectors), images, texts


@pytest.mark.parametrize("lean", [0.1, 0.4])
def test_leans_that_mirror_each_other_are_weighed_alike(lean: float) -> None:
    # Every caption leans away from its own hue as far as the prompt leans to red.
    found, _ = _weights(*_planted({"neutral": lean, "red": -lean, "blue": -lean}))
    assert found == pytest.approx((0.5, 0.5), abs=1e-6)


def test_captions_that_lean_less_weigh_more() -> None:
    found, _ = _weights(*_planted({"neutral": 0.4, "red": -0.1, "blue": -0.1}))
    assert found[1] > 0.7
    # What is minimised, minimised by something else.
    made, model, vectors, images, texts = _planted({"neutral": 0.4, "red": -0.1, "blue": -0.1})

    def variance(weight: float) -> float:
        every = []
        for one in texts:
            blocks = made.blocks(model.embed_texts, one.neutral)[0]
            scores = made.cosines(vectors[images.subject == one.subject], blocks)
            mixed = (scores @ [1.0 - weight, weight]).reshape(-1, 2)
            every.append(mixed.var(axis=1).mean())
        return float(np.mean(every))

    best = minimize(lambda w: variance(float(w[0])), [0.5], bounds=[(0, 1)], tol=1e-14)
    assert found[1] == pytest.approx(float(best.x[0]), abs=1e-4)


def test_captions_that_lean_as_the_prompt_does_weigh_nothing() -> None:
    # No weight is negative: what leans to red as the prompt does, and further, is left out.
    found, _ = _weights(*_planted({"neutral": 0.1, "red": 0.4, "blue": 0.4}))
    assert found == pytest.approx((1.0, 0.0), abs=1e-6)


def test_subjects_whose_prompts_name_a_value_teach_nothing() -> None:
    made, model, vectors, images, texts = _planted({"neutral": 0.4, "red": -0.1, "blue": -0.1})
    named = replace(texts[0], neutral=("a nurse", "a red nurse"))
    found, kept = _weights(made, model, vectors, images, [named, *texts[1:]])
    rest = _weights(made, model, vectors, images, texts[1:])[0]
    assert kept == ("nurse",)
    assert found == rest
    every = [replace(one, neutral=(f"a red {one.subject}",)) for one in texts]
    message = "^prompts of 'nurse' name a value of an attribute, as do those of every subject that"
    with pytest.raises(InputError, match=message):
        _weights(made, model, vectors, images, every)
    # A subject without images teaches nothing, either.
    other = SubjectTexts("judge", ("a judge",), ("a red judge",), ({},))
    assert _weights(made, model, vectors, images, [*texts[1:], other])[0] == rest


def test_sets_without_a_difference_are_an_error() -> None:
    made, model, vectors, images, texts = _planted({"neutral": 0.1, "red": 0.1, "blue": 0.1})
    same = np.repeat(vectors[::2], 2, axis=0)
    with pytest.raises(InputError, match="^neutral prompts are equally similar to the members of"):
        _weights(made, model, same, images, texts)
