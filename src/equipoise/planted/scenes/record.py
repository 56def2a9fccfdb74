"""Measure trained models of the scenes, and write what they are beside them."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.metrics import effect_sizes
from equipoise.planted.scenes.classify import CNNS, VITS, load_cnn, load_vit
from equipoise.planted.scenes.embed import CLIPS, load_clip
from equipoise.planted.scenes.measure import AttributeFound, accuracies, find_preferences
from equipoise.planted.scenes.render import HUES, SUBJECTS, degrade
from equipoise.planted.scenes.sets import render_balanced, render_sets
from equipoise.planted.scenes.variants import World, make_worlds

if TYPE_CHECKING:
    from equipoise.planted.scenes.classifiers import ClassifierRecipe
    from equipoise.planted.scenes.train_clip import ClipRecipe

FILE = "record.json"

SETS_PER_SUBJECT = 20
TEST_SEED = 1
"""Of the held-out images and sets."""

_LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "onnx", "numpy")


def write_record(folder: Path, clip: ClipRecipe, classifier: ClassifierRecipe) -> None:
    """Measure the models in a folder and write `FILE` there.

    Parameters
    ----------
    folder : Path
        With the weights. Of models that do not lie there nothing is written.
    clip, classifier : ClipRecipe, ClassifierRecipe
        How they were trained.
    """
    biased = make_worlds(clip.seed)["biased"]
    record = {
        "recipes": {"clip": asdict(clip), "classifiers": asdict(classifier)},
        "versions": {name: version(name) for name in _LIBRARIES}
        | {"python": platform.python_version()},
        "test": {"seed": TEST_SEED, "sets_per_subject": SETS_PER_SUBJECT},
        "clip": {
            name: _clip(folder, name, biased)
            for name in CLIPS
            if (folder / f"clip-{name}").exists()
        },
        "classifiers": _classifiers(folder),
    }
    text = json.dumps(record, indent=2, allow_nan=False)
    (folder / FILE).write_text(text + "\n", encoding="utf-8", newline="\n")


def _clip(folder: Path, name: str, biased: World) -> dict[str, Any]:
    """Measure one CLIP, against the favourites of the biased world in either case."""
    clip = load_clip(name, weights=folder)
    found = find_preferences(clip, biased, render_sets(SETS_PER_SUBJECT, seed=TEST_SEED))
    return {
        "accuracy": {
            key: round(value, 4) for key, value in accuracies(clip, seed=TEST_SEED).items()
        },
        "scale": round(clip.info.scale or math.nan, 3),
    } | {one.attribute: _attribute(one, planted=name == biased.name) for one in found}


def _attribute(found: AttributeFound, *, planted: bool) -> dict[str, Any]:
    numbers = {
        "largest_gap": float(abs(found.gap).max()),
        "largest_preference": float(abs(found.preferences).max()),
        "mean_gap_of_favourites": found.alignment,
        "p_value_favourites_permuted": found.p_value,
        "mean_ndkl": float(found.ndkl.mean()),
    }
    if planted:
        numbers["spearman_strength_gap"] = found.rank_correlation_gap
        numbers["spearman_strength_ndkl"] = found.rank_correlation_ndkl
    subjects = {
        subject: {"strength": float(strength) * planted, "gap": float(gap), "ndkl": float(ndkl)}
        for subject, strength, gap, ndkl in zip(
            SUBJECTS, found.strength, found.gap, found.ndkl, strict=True
        )
    }
    return _rounded(numbers) | {"subjects": {key: _rounded(row) for key, row in subjects.items()}}


def _classifiers(folder: Path) -> dict[str, Any]:
    models: dict[str, Any] = {
        f"cnn-{name}": load_cnn(name, weights=folder)
        for name in CNNS
        if (folder / f"cnn-{name}.onnx").exists()
    }
    models |= {
        f"vit-{name}": load_vit(name, weights=folder)
        for name in VITS
        if (folder / f"vit-{name}").exists()
    }
    return {name: classifier_found(model) for name, model in models.items()}


def classifier_found(model: Any) -> dict[str, float]:
    """Measure a classifier on balanced images, clear and degraded.

    Parameters
    ----------
    model : Classifier
        Its labels are `render.SUBJECTS`.

    Returns
    -------
    dict of str to float
        ``accuracy``, ``accuracy_degraded``, and ``effect_size_degraded``: mean over subjects of
        the corrected V of hue × predicted subject on degraded images.
    """
    scenes = render_balanced(10, seed=TEST_SEED)
    true = [SUBJECTS[one] for one in scenes.factors.subject]
    hue = [HUES[one] for one in scenes.factors.hue]
    clear, degraded = (
        [model.labels[one] for one in model.predict_proba(images).argmax(axis=1)]
        for images in (scenes.images, degrade(scenes.images, seed=TEST_SEED))
    )
    effects = effect_sizes(
        true, degraded, hue, statistic="cramers_v_corrected", min_expected=0.0, resampling=None
    )
    return _rounded(
        {
            "accuracy": _share_equal(true, clear),
            "accuracy_degraded": _share_equal(true, degraded),
            "effect_size_degraded": effects.value,
        }
    )


def _share_equal(true: list[str], predicted: list[str]) -> float:
    return sum(one == other for one, other in zip(true, predicted, strict=True)) / len(true)


def _rounded(row: dict[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in row.items()}
