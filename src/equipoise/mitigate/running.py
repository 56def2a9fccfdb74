"""Recipes fitted and measured on withheld subjects: by configuration, or withheld in turn."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from equipoise.core.errors import InputError, ModelError
from equipoise.core.finding import Family, Finding, Verdict
from equipoise.mitigate.assessing import (
    ALPHA,
    FEWEST,
    MARGIN,
    Outcome,
    Row,
    assess,
    named,
    outcomes,
)
from equipoise.mitigate.config import Config
from equipoise.mitigate.loading import Loaded, check_images, load
from equipoise.mitigate.measuring import Measured, Test, measure
from equipoise.mitigate.recipe import Progress, Recipe
from equipoise.mitigate.sets import ImageSets, Split, SubjectTexts, folds, training_of
from equipoise.mitigate.trained import Contrastive

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

    def over_folds(model: DualEncoder) -> Measured:
        parts = (measure(model, test, only=split.withheld) for split in splits)
        return reduce(Measured.joined, parts, Measured({}, {}))

    before, lowest = over_folds(base), None if floor is None else over_folds(floor)
    rows = assess(before, after, lowest, seed=seed)
    return Assessment(rows, outcomes(rows), splits, before, after, lowest, seconds, {})


def run(
    config: Config,
    *,
    base: Path = Path(),
    loaded: Loaded,
    progress: Progress | None = None,
) -> Assessment:
    """Fit every recipe, write its model into the output, and measure withheld subjects.

    Parameters
    ----------
    config : Config
    base : Path
        Folder of relative paths.
    loaded : Loaded
        Result of `load`.
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
    check_images(loaded.tables, progress)
    encoder = _opened(config, config.model, base)
    (base / config.output).mkdir(parents=True, exist_ok=True)
    test = loaded.test.of(loaded.split.withheld)
    after: dict[str, Measured] = {}
    seconds: dict[str, float] = {}
    models: dict[str, str] = {}
    for name, recipe in config.recipes.items():
        began = perf_counter()
        out = base / config.output / name
        model = recipe.fit(encoder, loaded.training, out, seed=config.seed, progress=progress)
        seconds[name] = perf_counter() - began
        models[name] = model.info.name
        after[name] = measure(model, test, progress=progress)
    before, floor = measure(encoder, test, progress=progress), None
    if config.floor is not None:
        floor = measure(_opened(config, config.floor, base), test, progress=progress)
    rows = assess(before, after, floor, seed=config.seed)
    return Assessment(rows, outcomes(rows), (loaded.split,), before, after, floor, seconds, models)


def _opened(config: Config, name: str, base: Path) -> DualEncoder:
    from equipoise.models import DualEncoder, load_model

    prefix, _, rest = name.partition(":")
    model = load_model(
        f"{prefix}:{base / rest}" if rest and (base / rest).exists() else name,
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
        `images` and `sets`; `learned_from`, `watched` and `withheld`: subjects; `smallest_p` of a
        test over the withheld subjects: above 0.05 it can show nothing; `recipes`: about how many
        steps each trains, 0 where nothing is trained.
    """
    data = load(config, base=base)
    test, learned, withheld = data.test, data.training, len(data.split.withheld)
    images = len(learned.images or ())
    recipes = [
        {
            "name": name,
            "steps": recipe.epochs * -(-images // recipe.batch)
            if isinstance(recipe, Contrastive)
            else getattr(recipe, "steps", 0),
        }
        for name, recipe in config.recipes.items()
    ]
    return {
        "images": len(test.images),
        "sets": data.counts["sets"],
        "learned_from": len(learned.texts),
        "watched": len(learned.validation),
        "withheld": withheld,
        "smallest_p": 2.0 ** (1 - withheld),
        "recipes": recipes,
    }


def tables_of(assessment: Assessment) -> dict[str, pa.Table]:
    """Return the tables of the report.

    Returns
    -------
    dict of str to pyarrow.Table
        `mitigation` (one row for each recipe and number), `mitigation_recipes` (the conclusion
        about each), `mitigation_subjects` (each withheld subject before and after).
    """
    rows = [
        asdict(row) | {"lowered": row.lowered, "reaches": row.reaches} for row in assessment.rows
    ]
    recipes = [
        asdict(outcome)
        | {
            "seconds": assessment.seconds[outcome.recipe],
            "model": assessment.models.get(outcome.recipe, ""),
        }
        for outcome in assessment.outcomes
    ]
    folds = {
        name: number for number, split in enumerate(assessment.splits) for name in split.withheld
    }
    floors = {} if assessment.floor is None else assessment.floor.bias
    subjects = [
        {
            "recipe": recipe,
            "measure": key[0],
            "about": key[1],
            "subject": subject,
            "fold": folds[subject],
            "before": assessment.before.bias[key][subject],
            "after": value,
            "floor": floors.get(key, {}).get(subject, math.nan),
        }
        for recipe, measured in assessment.after.items()
        for key, values in measured.bias.items()
        for subject, value in sorted(values.items())
    ]
    tables = {
        "mitigation": rows, "mitigation_recipes": recipes, "mitigation_subjects": subjects
    }  # fmt: skip
    return {name: pa.Table.from_pylist(table) for name, table in tables.items()}


def findings_of(assessment: Assessment) -> tuple[Finding, ...]:
    """Return one finding for each number: its change, without a verdict on the model."""
    conclusions = {outcome.recipe: outcome.conclusion for outcome in assessment.outcomes}
    return tuple(_finding(row, conclusions[row.recipe]) for row in assessment.rows)


def _finding(row: Row, conclusion: str) -> Finding:
    unit = "subject" if row.role == "bias" else "query" if "recall" in row.measure else "image"
    direction = "unchanged"
    if row.difference:
        went = "fell" if row.difference < 0 else "rose"
        group = "withheld subjects" if row.role == "bias" else row.about
        change = f"from {row.before:.3g} to {row.after:.3g}"
        direction = f"{named(row.measure)} of {group} {went} {change}"
    floor = None if math.isnan(row.floor) else row.floor
    parameters = {"before": row.before, "after": row.after, "floor": floor}
    return Finding(
        audit="mitigation", model=row.recipe, metric=f"{row.measure}_change", subject="",
        groups=row.about, version="default",
        family=Family.LEAF if row.role == "bias" else Family.COMPOSITE, value=row.difference,
        ci_low=row.low, ci_high=row.high, level=0.95, chance=math.nan, chance_low=math.nan,
        chance_high=math.nan, excess=math.nan, p_value=row.p_value, q_value=row.q_value,
        threshold=math.nan, n=row.n, by_group=(), excluded=(), unit=unit,
        method=f"Student's t, paired by {unit}; none with fewer than {FEWEST}",
        null=f"before and after are exchangeable for each {unit}; {row.test}",
        parameters=json.dumps(parameters, sort_keys=True), direction=direction,
        verdict=Verdict.NONE,
        reason=f"a change is no disparity of its own; said of this recipe: {conclusion}",
        citation="",
    )  # fmt: skip


def notes_of(assessment: Assessment) -> tuple[str, ...]:
    """Return the limitations that a reader must know."""
    withheld, folds = sum(len(split.withheld) for split in assessment.splits), assessment.splits
    floor = "the level of a model without the bias"
    if assessment.floor is None:
        floor = "0, which trained models do not reach: no model without the bias was given"
    few = min((row.n for row in assessment.rows if row.role == "bias"), default=withheld)
    notes = (
        f"Disparities are those of {withheld} subjects, withheld in {len(folds)} parts while the "
        f"recipes learned from the others. The floor is {floor}. Every recipe is shown.",
        f"A recipe transfers where every disparity fell (q < {ALPHA}, signs of the differences "
        "exchanged over subjects), by the estimate at least halfway to the floor, and accuracy and "
        f"each recall fell by {100 * MARGIN:.0f} points at most. To lower a disparity that is "
        "measured is not to remove it everywhere: audit the new model on data of your own.",
    )
    if (least := 2.0 ** (1 - few)) <= ALPHA:
        return notes
    return (
        f"{few} subjects were withheld: the smallest p of a test over them is {least:g}, so that "
        "nothing can be shown. Withhold six or more.",
        *notes,
    )
