"""Recipes held against each other on subjects that none has seen: each is withheld once."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from equipoise.core.errors import InputError
from equipoise.mitigate.assessing import Row, assessed
from equipoise.mitigate.measuring import Measured, Test, measured
from equipoise.mitigate.outcomes import Outcome, outcomes
from equipoise.mitigate.recipe import Progress, Recipe, Training
from equipoise.mitigate.sets import ImageSets, Pairs, SubjectTexts
from equipoise.mitigate.split import Split, folds, split_subjects

if TYPE_CHECKING:
    from equipoise.models import DualEncoder

VALIDATION = 0.2
"""Share of the subjects to learn from on which a loss is watched, or a strength chosen."""


@dataclass(frozen=True)
class Assessment:
    """What recipes did to withheld subjects.

    Attributes
    ----------
    rows : tuple of Row
    outcomes : tuple of Outcome
    splits : tuple of Split
        One, or one for each fold.
    before : Measured
    after : mapping of str to Measured
    floor : Measured or None
    seconds : mapping of str to float
        Time to fit, by recipe, over all folds.
    models : mapping of str to str
        Name of the model that a recipe wrote; empty of a cross-fit.
    """

    rows: tuple[Row, ...]
    outcomes: tuple[Outcome, ...]
    splits: tuple[Split, ...]
    before: Measured
    after: Mapping[str, Measured]
    floor: Measured | None
    seconds: Mapping[str, float]
    models: Mapping[str, str]


def training_of(
    texts: Mapping[str, SubjectTexts],
    images: ImageSets | None,
    subjects: Sequence[str],
    *,
    pairs: Pairs | None = None,
    validation: float = VALIDATION,
    seed: int = 0,
) -> Training:
    """Cut subjects into those to learn from and those to watch.

    Parameters
    ----------
    texts : mapping of str to SubjectTexts
    images : ImageSets, optional
        Those of other subjects are left out.
    subjects : sequence of str
        None of them withheld.
    pairs : Pairs, optional
    validation : float
        Share to watch; 0: none.
    seed : int
    """
    if validation:
        inner = split_subjects(subjects, withheld=validation, seed=seed)
        learned, watched = inner.training, inner.withheld
    else:
        learned, watched = tuple(subjects), ()
    return Training(
        tuple(texts[name] for name in learned),
        tuple(texts[name] for name in watched),
        None if images is None else images.of(learned),
        None if images is None or not watched else images.of(watched),
        pairs,
    )


def cross_fit(  # noqa: PLR0913 - what is learned from, asked, and how
    base: DualEncoder,
    recipes: Sequence[Recipe],
    texts: Mapping[str, SubjectTexts],
    images: ImageSets,
    test: Test,
    *,
    floor: DualEncoder | None = None,
    count: int = 4,
    seed: int = 0,
    progress: Progress | None = None,
) -> Assessment:
    """Fit every recipe on each part of the subjects, and measure it on the others.

    Parameters
    ----------
    base : DualEncoder
    recipes : sequence of Recipe
        All of them are reported, whatever they do: none is chosen on withheld subjects.
    texts : mapping of str to SubjectTexts
        Of every subject.
    images : ImageSets
        To learn from. They share no image with `test`.
    test : Test
    floor : DualEncoder, optional
        A model without the bias: how low the numbers can be expected to fall.
    count : int
        Folds.
    seed : int
    progress : callable, optional

    Returns
    -------
    Assessment

    Raises
    ------
    InputError
        When two recipes have one name, or there are too few subjects.
    """
    names = [recipe.name for recipe in recipes]
    if len({*names}) < len(names) or not names:
        raise InputError(f"recipes called {', '.join(names) or 'nothing'}; expected distinct names")
    splits = folds(test.images.subjects, count=count, seed=seed)
    after = {name: Measured({}, {}) for name in names}
    seconds = dict.fromkeys(names, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        for number, split in enumerate(splits):
            learned = training_of(texts, images, split.training, seed=seed + number)
            for place, recipe in enumerate(recipes):
                if progress is not None:
                    done = number * len(recipes) + place
                    progress("fitting recipes", done, len(splits) * len(recipes))
                began = perf_counter()
                out = Path(folder) / f"{place}-{number}"
                model = recipe.fit(base, learned, out, seed=seed)
                seconds[recipe.name] += perf_counter() - began
                found = measured(model, test, only=split.withheld)
                after[recipe.name] = after[recipe.name].joined(found)
    before = _over_folds(base, test, splits)
    lowest = None if floor is None else _over_folds(floor, test, splits)
    rows = assessed(before, after, lowest, seed=seed)
    return Assessment(rows, outcomes(rows), splits, before, after, lowest, seconds, {})


def _over_folds(model: DualEncoder, test: Test, splits: Sequence[Split]) -> Measured:
    """Return what is measured of one model, asked fold by fold as the fitted ones are."""
    found = Measured({}, {})
    for split in splits:
        found = found.joined(measured(model, test, only=split.withheld))
    return found
