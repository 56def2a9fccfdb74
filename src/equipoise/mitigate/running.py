"""Recipes fitted and measured on withheld subjects: by configuration, or withheld in turn."""

import math
import tempfile
from collections.abc import (
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import asdict, dataclass, replace
from functools import reduce
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa

from equipoise.audits.group_sources import UNCORRECTED, notes_on_changes, predicted_attributes
from equipoise.audits.notes import merged
from equipoise.config.fields import ExtractionConfig
from equipoise.core import Family, Finding, InputError, ModelError, NullHypothesis, Progress
from equipoise.core.finding import plain_parameters
from equipoise.core.sentences import Sentence
from equipoise.core.types import Json
from equipoise.core.writing import write
from equipoise.mitigate.config import IMAGES, WITHHELD, Config
from equipoise.mitigate.generated import GeneratedTest
from equipoise.mitigate.loading import Loaded, check_images, load
from equipoise.mitigate.measuring import (
    ALPHA,
    FEWEST,
    HALFWAY,
    MARGIN,
    ModelMeasures,
    Numbers,
    Outcome,
    Row,
    Test,
    assess,
    conclude,
    name_measure,
)
from equipoise.mitigate.recipe import AnyModel, Recipe
from equipoise.mitigate.sets import (
    VALIDATION,
    ImageSets,
    Split,
    SubjectTexts,
    Training,
    build_training,
    folds,
)
from equipoise.mitigate.trained import Contrastive
from equipoise.models import Sampling
from equipoise.models.protocols import DualEncoder
from equipoise.report.text import plural


@dataclass(frozen=True)
class Assessment:
    """Changes of withheld subjects by recipes.

    Attributes
    ----------
    rows : tuple of Row
    outcomes : tuple of Outcome
    splits : tuple of Split
        One, or one for each fold.
    before : ModelMeasures
    after : mapping of str to ModelMeasures
    floor : ModelMeasures or None
    seconds : mapping of str to float
        Time to fit, by recipe, over all folds.
    models : mapping of str to str
        Name of the model that a recipe wrote; empty of a cross-fit.
    notes : tuple of str
        On how a generator was measured.
    """

    rows: tuple[Row, ...]
    outcomes: tuple[Outcome, ...]
    splits: tuple[Split, ...]
    before: ModelMeasures
    after: Mapping[str, ModelMeasures]
    floor: ModelMeasures | None
    seconds: Mapping[str, float]
    models: Mapping[str, str]
    notes: tuple[str, ...] = ()


def cross_fit(  # noqa: PLR0913 - models, data, and how
    base: AnyModel,
    recipes: Sequence[Recipe],
    texts: Mapping[str, SubjectTexts],
    images: ImageSets,
    test: Test | GeneratedTest,
    *,
    floor: AnyModel | None = None,
    count: int = 4,
    validation: float = VALIDATION,
    seed: int = 0,
    progress: Progress | None = None,
) -> Assessment:
    """Fit every recipe on each part of the subjects, and measure it on the others.

    Parameters
    ----------
    base : DualEncoder or ImageGenerator
    recipes : sequence of Recipe
        All of them are reported, whatever they do: none is chosen on withheld subjects.
    texts : mapping of str to SubjectTexts
        Of every subject.
    images : ImageSets
        To learn from. They share no image with `test`.
    test : Test or GeneratedTest
    floor : DualEncoder or ImageGenerator, optional
        A model without the bias: how low the numbers can be expected to fall.
    count : int
        Folds.
    validation : float
        Share of the training subjects on which a loss is watched; 0: none.
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
    named = {recipe.name: recipe for recipe in recipes}
    if len(named) < len(recipes) or not named:
        raise InputError(f"recipes called {', '.join(named) or 'nothing'}; expected distinct names")
    splits = folds(test.images.subjects, count=count, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        jobs = []
        for number, split in enumerate(splits):
            training = build_training(
                texts, images, split.training, validation=validation, seed=seed + number
            )
            jobs.append(_Job(split, training, Path(folder) / str(number), split.withheld))
        done = _assess_jobs(base, floor, named, jobs, test, seed, progress)
    return replace(done, models={})


@dataclass(frozen=True)
class _Job:
    """A split with its training data, output folder and subjects to measure."""

    split: Split
    training: Training
    out: Path
    only: Sequence[str] | None = None
    trust_remote_code: bool = False


def _assess_jobs(
    base: Any,
    floor: Any,
    recipes: Mapping[str, Recipe],
    jobs: Sequence[_Job],
    test: Test | GeneratedTest,
    seed: int,
    progress: Progress | None,
    predicted: Collection[str] = (),
) -> Assessment:
    teacher = test.teacher if isinstance(test, GeneratedTest) else None
    notes = test.notes()
    after = {name: ModelMeasures({}, {}) for name in recipes}
    seconds, models = dict.fromkeys(recipes, 0.0), {}
    for job in jobs:
        training = replace(job.training, teacher=teacher)
        for name, recipe in recipes.items():
            began = perf_counter()
            model = recipe.fit(
                base, training, job.out / name, seed=seed,
                trust_remote_code=job.trust_remote_code, progress=progress,
            )  # fmt: skip
            seconds[name] += perf_counter() - began
            models[name] = model.info.name
            measured = test.measure(model, only=job.only, progress=progress)
            after[name] = after[name].merge(measured)

    def measure_all(model: Any) -> ModelMeasures:
        parts = (test.measure(model, only=job.only, progress=progress) for job in jobs)
        return reduce(ModelMeasures.merge, parts)

    before, lowest = measure_all(base), None if floor is None else measure_all(floor)
    if lowest is None and before.chance:
        lowest = ModelMeasures(before.chance, {})
    rows = assess(before, after, lowest, seed=seed)
    splits = tuple(job.split for job in jobs)
    rows = tuple(row.withheld(UNCORRECTED) if row.about in predicted else row for row in rows)
    notes = (*notes, *merged(notes_on_changes(predicted)))
    return Assessment(rows, conclude(rows), splits, before, after, lowest, seconds, models, notes)


def run(
    config: Config, *, base: Path = Path(), loaded: Loaded, progress: Progress | None = None
) -> Assessment:
    """Fit every recipe, write its model, and measure the withheld subjects.

    Parameters
    ----------
    config : Config
        Of one model.
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
    check_images(loaded.test, progress)
    generation, out = config.generation, base / config.output
    model, floor = (
        name and _load_model(config, name, base, makes_images=generation is not None)
        for name in (config.model, config.floor)
    )
    subjects = "".join(f"{subject}\n" for subject in loaded.split.withheld)
    write(out / WITHHELD, subjects.encode())
    test: Test | GeneratedTest = loaded.test
    if generation is not None:
        sampling = Sampling(generation.steps, generation.guidance, generation.negative_prompt)
        probe = _load_model(config, generation.probe, base)
        teacher = _load_model(config, generation.teacher or generation.probe, base)
        images, texts = test.images, test.texts
        test = GeneratedTest(
            images, texts, probe, sampling, generation.images, out / IMAGES, config.seed, teacher
        )
    trusted = config.trust_remote_code
    job = _Job(loaded.split, loaded.training, out, trust_remote_code=trusted)
    test = test.of(loaded.split.withheld)
    predicted = predicted_attributes([config])
    return _assess_jobs(model, floor, config.recipes, [job], test, config.seed, progress, predicted)


def _load_model(config: Config, model_name: str, base: Path, *, makes_images: bool = False) -> Any:
    if model_name != config.model:
        config = config.model_copy(update={"model": model_name, "revision": None})
    options, name = config.options(ExtractionConfig()), config.located(base)
    if makes_images:
        return options.load_generator(name)
    model = options.load(name)
    if not isinstance(model, DualEncoder):
        raise ModelError(
            f"{config.model} isn't a dual encoder. To do: name one, such as "
            "hf:openai/clip-vit-base-patch32"
        )
    return model


def plan(config: Config, *, base: Path = Path()) -> dict[str, Json]:
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
    recipes = []
    for name, recipe in config.recipes.items():
        steps = getattr(recipe, "steps", 0)
        if isinstance(recipe, Contrastive):
            steps = recipe.epochs * -(-images // recipe.batch)
        recipes.append({"name": name, "steps": steps})
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
    seconds, models = assessment.seconds, assessment.models
    recipes = [
        asdict(row) | {"seconds": seconds[row.recipe], "model": models.get(row.recipe, "")}
        for row in assessment.outcomes
    ]
    return {
        "mitigation": pa.Table.from_pylist(rows),
        "mitigation_recipes": pa.Table.from_pylist(recipes),
        "mitigation_subjects": pa.Table.from_pylist([*_subject_rows(assessment)]),
    }


def _subject_rows(assessment: Assessment) -> Iterator[dict[str, Any]]:
    """Yield each bias of each withheld subject, before and after each recipe."""
    folds: dict[str, int] = {}
    for number, split in enumerate(assessment.splits):
        folds.update(dict.fromkeys(split.withheld, number))
    floors: Numbers = {}
    if assessment.floor:
        floors = assessment.floor.bias
    for recipe, measured in assessment.after.items():
        for key, values in measured.bias.items():
            for subject, value in sorted(values.items()):
                yield {
                    "recipe": recipe,
                    "measure": key[0],
                    "about": key[1],
                    "subject": subject,
                    "fold": folds[subject],
                    "before": assessment.before.bias[key][subject],
                    "after": value,
                    "floor": floors.get(key, {}).get(subject, math.nan),
                }


def findings_of(assessment: Assessment) -> tuple[Finding, ...]:
    """Return one finding for each number: its change, without a verdict on the model."""
    return tuple(map(_finding, assessment.rows))


def _finding(row: Row) -> Finding:
    unit = "subject" if row.role == "bias" else "query" if "recall" in row.measure else "image"
    group = "withheld subjects" if row.role == "bias" else row.about
    change = f"went from {row.before:.3g} to {row.after:.3g}"
    parameters = {
        "halfway": HALFWAY, "margin": MARGIN, "alpha": ALPHA, "before": row.before,
        "after": row.after, "floor": None if math.isnan(row.floor) else row.floor,
    }  # fmt: skip
    return Finding(
        audit="mitigation", model=row.recipe, metric=row.measure, change_from="before",
        groups=row.about,
        family=Family.LEAF if row.role == "bias" else Family.COMPOSITE, value=row.difference,
        ci_low=row.low, ci_high=row.high, level=0.95, p_value=row.p_value, q_value=row.q_value,
        n=row.n, unit=unit,
        method=f"Student's t, paired by {unit}; none with fewer than {FEWEST}",
        null=NullHypothesis.MODELS,
        null_drawn=f"before and after are exchangeable for each {unit}; {row.test}",
        parameters=plain_parameters(parameters),
        direction=Sentence(f"{name_measure(row.measure)} of {group} {change}"),
        reason="a change is no disparity of its own",
    )  # fmt: skip


def notes_of(assessment: Assessment) -> tuple[str, ...]:
    """Return the limitations that a reader must know."""
    withheld, folds = sum(len(split.withheld) for split in assessment.splits), assessment.splits
    floor = "the level of a model without the bias"
    if assessment.before.chance:
        floor = "the level of as many images with values in equal shares, unless a model was given"
    elif assessment.floor is None:
        floor = "0, which trained models do not reach: no model without the bias was given"
    notes = (
        *assessment.notes,
        f"Disparities are about {plural(withheld, 'subject')}, withheld in "
        f"{plural(len(folds), 'part')} while recipes learned from the others. The floor "
        f"is {floor}. Every recipe is shown.",
        f"A recipe transfers if every disparity fell (q < {ALPHA}), by at least half of the way to "
        f"the floor, and accuracy and each recall lost {100 * MARGIN:.0f} points at most. The test "
        "exchanges the signs of the differences over subjects. Other disparities may stay: audit "
        "the new model on your own data.",
    )
    few = min((row.n for row in assessment.rows if row.role == "bias"), default=withheld)
    if few >= FEWEST:
        return notes
    least = 2.0 ** (1 - few)
    return (
        f"Too few subjects were withheld to show anything: {few}. The smallest p of a test is "
        f"{least:g}. Withhold {FEWEST} or more.",
        *notes,
    )
