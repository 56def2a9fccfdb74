"""Train the models of the scenes and record their measured accuracy and bias.

Run as ``python -m tools.planted.scenes --out DIR``; needs the extra ``train``.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.metrics import effect_sizes
from equipoise.planted.scenes.embed import CLIPS, load_clip
from equipoise.planted.scenes.render import HUES, SUBJECTS, degrade
from equipoise.planted.scenes.sets import render_balanced, render_sets
from equipoise.planted.scenes.variants import World
from tools.planted.classifiers import ClassifierRecipe, train_classifiers
from tools.planted.clips import ClipRecipe, settle, train_clips
from tools.planted.measures import (
    Preferences,
    accuracies,
    find_preferences,
    load_classifiers,
)
from tools.planted.training import need, versions, write_record
from tools.planted.worlds import make_worlds

SETS_PER_SUBJECT = 20
TEST_SEED = 1
"""Of the held-out images and sets."""

_LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "onnx", "numpy")


def measure(folder: Path, clip: ClipRecipe, classifier: ClassifierRecipe) -> None:
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
        "versions": versions(*_LIBRARIES),
        "test": {"seed": TEST_SEED, "sets_per_subject": SETS_PER_SUBJECT},
        "clip": {
            name: _clip(folder, name, biased)
            for name in CLIPS
            if (folder / f"clip-{name}").exists()
        },
        "classifiers": {
            name: classifier_found(model) for name, model in load_classifiers(folder).items()
        },
    }
    write_record(folder, record)


def _clip(folder: Path, name: str, biased: World) -> dict[str, Any]:
    """Measure one CLIP, against the favourites of the biased world in either case."""
    clip = load_clip(name, weights=folder)
    preferences = find_preferences(clip, biased, render_sets(SETS_PER_SUBJECT, seed=TEST_SEED))
    return {
        "accuracy": {
            key: round(value, 4) for key, value in accuracies(clip, seed=TEST_SEED).items()
        },
        "scale": round(clip.info.scale or math.nan, 3),
    } | {
        key: _attribute(preference, planted=name == biased.name)
        for key, preference in preferences.items()
    }


def _attribute(preferences: Preferences, *, planted: bool) -> dict[str, Any]:
    numbers = {
        "largest_gap": float(abs(preferences.gap).max()),
        "largest_preference": float(abs(preferences.gaps).max()),
        "mean_gap_of_favourites": float(preferences.gap.mean()),
        "p_value_favourites_permuted": preferences.p_value,
        "mean_ndkl": float(preferences.ndkl.mean()),
    }
    if planted:
        numbers["spearman_strength_gap"] = preferences.rank_correlation_gap
        numbers["spearman_strength_ndkl"] = preferences.rank_correlation_ndkl
    subjects = {
        subject: {"strength": float(strength) * planted, "gap": float(gap), "ndkl": float(ndkl)}
        for subject, strength, gap, ndkl in zip(
            SUBJECTS, preferences.strength, preferences.gap, preferences.ndkl, strict=True
        )
    }
    return _rounded(numbers) | {"subjects": {key: _rounded(row) for key, row in subjects.items()}}


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
    true, hue = (np.take(SUBJECTS, scenes.factors.subject), np.take(HUES, scenes.factors.hue))
    clear, degraded = (
        np.take(model.labels, model.predict_proba(images).argmax(axis=1))
        for images in (scenes.images, degrade(scenes.images, seed=TEST_SEED))
    )
    effects = effect_sizes(
        true, degraded, hue, statistic="cramers_v_corrected", min_expected=0.0, resampling=None
    )
    return _rounded(
        {
            "accuracy": float(np.mean(true == clear)),
            "accuracy_degraded": float(np.mean(true == degraded)),
            "effect_size_degraded": effects.value,
        }
    )


def _rounded(row: dict[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in row.items()}


PARTS = ("clip", "settling", "classifiers")


def train(out: Path, parts: Sequence[str], clip: ClipRecipe, classifier: ClassifierRecipe) -> None:
    """Train models into a folder, then measure all that lie there.

    Parameters
    ----------
    out : Path
        Made where it is missing.
    parts : sequence of str
        Some of `PARTS`; "settling" trains the null CLIP that lies there further.
    clip, classifier : ClipRecipe, ClassifierRecipe
        How to train.

    Raises
    ------
    MissingExtraError
        If a library that training needs is not installed.
    """
    need("train", "torch", "transformers", "onnx", "onnxscript")
    out.mkdir(parents=True, exist_ok=True)
    if "clip" in parts:
        train_clips(out, CLIPS, clip)
    if "settling" in parts:
        null = make_worlds(clip.seed)["null"]
        settle(out / f"clip-{null.name}", null, clip)
    if "classifiers" in parts:
        train_classifiers(out, classifier)
    measure(out, clip, classifier)


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="of favourites, strengths, images, captions, weights and order; 0: as shipped",
    )
    arguments = parser.parse_args()
    if arguments.seed < 0:
        parser.error(f"--seed must not be negative, got {arguments.seed}")
    seed = arguments.seed
    train(arguments.out, arguments.parts, ClipRecipe(seed=seed), ClassifierRecipe(seed=seed))


if __name__ == "__main__":
    main()
