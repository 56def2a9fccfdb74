"""Recipes by configuration: fitted, written, and measured on withheld subjects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from equipoise.core.errors import ModelError
from equipoise.mitigate.assessing import assessed
from equipoise.mitigate.config import Config
from equipoise.mitigate.crossfit import Assessment, training_of
from equipoise.mitigate.loading import Loaded, load
from equipoise.mitigate.measuring import Measured, RetrievalSet, Test, ZeroShotSet, measured
from equipoise.mitigate.outcomes import outcomes
from equipoise.mitigate.pictures import check_images
from equipoise.mitigate.recipe import Progress, Recipe, Training

if TYPE_CHECKING:
    from equipoise.models import DualEncoder


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
        What relative paths are relative to.
    loaded : Loaded, optional
        What `load` returned before.
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
    encoder = _opened(config, config.model, base)
    learned = training_of(
        data.texts, data.images, data.split.training, pairs=data.pairs,
        validation=config.validation, seed=config.seed,
    )  # fmt: skip
    after: dict[str, Measured] = {}
    seconds: dict[str, float] = {}
    models: dict[str, str] = {}
    for name, section in config.recipes.items():
        began = perf_counter()
        model = _fitted(
            section.made(name), encoder, learned, base / config.output / name, config, progress
        )
        seconds[name] = perf_counter() - began
        models[name] = model.info.name
        after[name] = measured(model, _withheld(data), progress=progress)
    before = measured(encoder, _withheld(data), progress=progress)
    floor = None
    if config.floor is not None:
        floor = measured(_opened(config, config.floor, base), _withheld(data), progress=progress)
    rows = assessed(before, after, floor, seed=config.seed)
    return Assessment(rows, outcomes(rows), (data.split,), before, after, floor, seconds, models)


def _fitted(
    recipe: Recipe,
    encoder: DualEncoder,
    learned: Training,
    out: Path,
    config: Config,
    progress: Progress | None,
) -> DualEncoder:
    out.parent.mkdir(parents=True, exist_ok=True)
    return recipe.fit(encoder, learned, out, seed=config.seed, progress=progress)


def _withheld(data: Loaded) -> Test:
    images = data.images.of(data.split.withheld)
    return Test(images, data.texts, data.test.zero_shot, data.test.retrieval)


def _opened(config: Config, name: str, base: Path) -> DualEncoder:
    from equipoise.models import DualEncoder, load_model

    prefix, colon, rest = name.partition(":")
    beside = base / rest
    found = load_model(
        f"{prefix}:{beside}" if colon and rest and beside.exists() else name,
        device=config.device,
        dtype=config.dtype,
        revision=config.revision if name == config.model else None,
        allow_pickle=config.allow_pickle,
        trust_remote_code=config.trust_remote_code,
    )
    if not isinstance(found, DualEncoder):
        raise ModelError(
            f"{name} is no dual encoder, with a tower for images and one for texts. To do: name "
            "one, such as hf:openai/clip-vit-base-patch32"
        )
    return found


@dataclass(frozen=True)
class Plan:
    """What `run` would do.

    Attributes
    ----------
    model, output : str
    images, sets : int
    learned_from, watched, withheld : int
        Subjects.
    smallest_p : float
        That a test over the withheld subjects can give; above 0.05 it can show nothing.
    pairs : int
    recipes : list of dict
        Name, kind, and batches an epoch of those that train on images.
    price : list of dict
        Data sets, and images of each.
    """

    model: str
    output: str
    images: int
    sets: int
    learned_from: int
    watched: int
    withheld: int
    smallest_p: float
    pairs: int
    recipes: list[dict[str, Any]]
    price: list[dict[str, Any]]


def plan(config: Config, *, base: Path = Path()) -> Plan:
    """Say what `run` would do; no model is loaded and no image is opened."""
    data = load(config, base=base)
    learned = training_of(
        data.texts, data.images, data.split.training, pairs=data.pairs,
        validation=config.validation, seed=config.seed,
    )  # fmt: skip
    images = learned.images
    recipes = [
        {
            "name": name,
            "recipe": section.recipe,
            "model": str(config.output / name),
            "steps": _steps(section, 0 if images is None else len(images)),
        }
        for name, section in config.recipes.items()
    ]
    price = [
        {"set": one.name, "measure": kind, "images": len(one.images)}
        for kind, sets in (("accuracy", data.test.zero_shot), ("recall", data.test.retrieval))
        for one in cast("tuple[ZeroShotSet | RetrievalSet, ...]", sets)
    ]
    return Plan(
        config.model, config.output.as_posix(), len(data.images), int(data.counts["sets"]),
        len(learned.texts), len(learned.validation), len(data.split.withheld),
        2.0 ** (1 - len(data.split.withheld)), int(data.counts["pairs"]), recipes, price,
    )  # fmt: skip


def _steps(section: Any, images: int) -> int:
    """Return about how many steps a recipe trains for; 0 where nothing is trained."""
    if section.recipe == "contrastive":
        return int(section.epochs * -(-images // section.batch))
    return int(getattr(section, "steps", 0))
