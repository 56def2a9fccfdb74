"""Recipes fitted and measured on withheld subjects: by configuration, or withheld in turn."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from equipoise.core.errors import InputError, ModelError
from equipoise.mitigate.assessing import Outcome, Row, assess, outcomes
from equipoise.mitigate.config import Config
from equipoise.mitigate.loading import Loaded, check_images, load
from equipoise.mitigate.measuring import Measured, Test, measure
from equipoise.mitigate.recipe import Progress, Recipe
from equipoise.mitigate.sets import ImageSets, Split, SubjectTexts, folds, training_of

if TYPE_CHECKING:
    from equipoise.models import DualEncoder


@dataclass(frozen=True)
class Assessment:
    """Changes of withheld subjects by recipes.

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


def cross_fit(  # noqa: PLR0913 - models, data, and how
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
                model = recipe.fit(base, learned, Path(folder) / f"{place}-{number}", seed=seed)
                seconds[recipe.name] += perf_counter() - began
                own = measure(model, test, only=split.withheld)
                after[recipe.name] = after[recipe.name].joined(own)
    before = _over_folds(base, test, splits)
    lowest = None if floor is None else _over_folds(floor, test, splits)
    rows = assess(before, after, lowest, seed=seed)
    return Assessment(rows, outcomes(rows), splits, before, after, lowest, seconds, {})


def _over_folds(model: DualEncoder, test: Test, splits: Sequence[Split]) -> Measured:
    """Return measures of one model, taken fold by fold as those of the fitted models are."""
    measured = Measured({}, {})
    for split in splits:
        measured = measured.joined(measure(model, test, only=split.withheld))
    return measured


def run(
    config: Config,
    *,
    base: Path = Path(),
    loaded: Loaded | None = None,
    progress: Progress | None = None,
) -> Assessment:
    """Fit every recipe, write its model into the output, and measure withheld subjects.

    Parameters
    ----------
    config : Config
    base : Path
        Folder of relative paths.
    loaded : Loaded, optional
        Result of an earlier `load`.
    progress : callable, optional

    Raises
    ------
    DataError
        When an image cannot be read or decoded; all are tried before a model is loaded.
    ModelError
        When the model is no dual encoder, or cannot be trained.
    RunError
        When something lies where a model is to be.
    """
    data = load(config, base=base) if loaded is None else loaded
    check_images(data.tables, progress)
    encoder, learned = _opened(config, config.model, base), data.training
    (base / config.output).mkdir(parents=True, exist_ok=True)
    test = data.test.of(data.split.withheld)
    after: dict[str, Measured] = {}
    seconds: dict[str, float] = {}
    models: dict[str, str] = {}
    for name, recipe in config.recipes.items():
        began = perf_counter()
        out = base / config.output / name
        model = recipe.fit(encoder, learned, out, seed=config.seed, progress=progress)
        seconds[name] = perf_counter() - began
        models[name] = model.info.name
        after[name] = measure(model, test, progress=progress)
    before, floor = measure(encoder, test, progress=progress), None
    if config.floor is not None:
        floor = measure(_opened(config, config.floor, base), test, progress=progress)
    rows = assess(before, after, floor, seed=config.seed)
    return Assessment(rows, outcomes(rows), (data.split,), before, after, floor, seconds, models)


def _opened(config: Config, name: str, base: Path) -> DualEncoder:
    from equipoise.models import DualEncoder, load_model

    prefix, colon, rest = name.partition(":")
    beside = base / rest
    model = load_model(
        f"{prefix}:{beside}" if colon and rest and beside.exists() else name,
        device=config.device,
        dtype=config.dtype,
        revision=config.revision if name == config.model else None,
        allow_pickle=config.allow_pickle,
        trust_remote_code=config.trust_remote_code,
    )
    if not isinstance(model, DualEncoder):
        raise ModelError(
            f"{name} is no dual encoder. To do: name one, such as hf:openai/clip-vit-base-patch32"
        )
    return model


def plan(config: Config, *, base: Path = Path()) -> dict[str, Any]:
    """Return counts of what `run` would do; no model is loaded and no image is opened.

    Returns
    -------
    dict
        `model` and `output`; `images` and `sets`; `learned_from`, `watched` and `withheld`:
        subjects; `smallest_p` of a test over the withheld subjects: above 0.05 it can show
        nothing; `pairs`; `recipes`: name, kind, model, and about how many steps each trains, 0
        where nothing is trained; `price`: data sets, and images of each.
    """
    data = load(config, base=base)
    test, learned, withheld = data.test, data.training, len(data.split.withheld)
    images = len(learned.images or ())
    recipes = [
        {
            "name": name,
            "recipe": recipe.recipe,
            "model": str(config.output / name),
            "steps": recipe.epochs * -(-images // recipe.batch)
            if recipe.recipe == "contrastive"
            else getattr(recipe, "steps", 0),
        }
        for name, recipe in config.recipes.items()
    ]
    price = [
        {"set": own.name, "measure": measure, "images": len(own.images)}
        for measure, sets in (("accuracy", test.zero_shot), ("recall", test.retrieval))
        for own in sets
    ]
    return {
        "model": config.model,
        "output": config.output.as_posix(),
        "images": len(test.images),
        "sets": data.counts["sets"],
        "learned_from": len(learned.texts),
        "watched": len(learned.validation),
        "withheld": withheld,
        "smallest_p": 2.0 ** (1 - withheld),
        "pairs": data.counts["pairs"],
        "recipes": recipes,
        "price": price,
    }
