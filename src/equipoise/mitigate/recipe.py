"""The base of every recipe, the record of a fitted model, and how its folder is written."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from equipoise import __version__
from equipoise.audits.config_fields import Name, Section, distinct
from equipoise.core.arrays import Objects
from equipoise.core.errors import RunError
from equipoise.evidence import new_run
from equipoise.mitigate.sets import SubjectTexts, Training, content_of
from equipoise.models.info import Facts, Record
from equipoise.models.protocols import DualEncoder
from equipoise.models.wrapped import SETTINGS, Wrapping, save_wrapped

Progress = Callable[[str, int, int | None], None]
"""Progress callback: (step, done, total)."""

Rate = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Names = Annotated[tuple[Name, ...], Field(strict=False, min_length=1), AfterValidator(distinct)]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]

RECORD = "mitigation.json"
"""File beside the weights of a trained model."""


class Recipe(Section, ABC):
    """A way to lower a disparity of a dual encoder; its fields are its settings."""

    recipe: str
    name: str

    @abstractmethod
    def fit(
        self,
        base: DualEncoder,
        training: Training,
        out: Path,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> DualEncoder:
        """Learn from the training subjects and write a model with a key of its own.

        Parameters
        ----------
        base : DualEncoder
            Not changed.
        training : Training
        out : Path
            Folder of the new model: missing, empty, or with the model of the same record.
        seed : int
        progress : callable, optional

        Returns
        -------
        DualEncoder
            Loaded from `out`; `info.name` loads it again.

        Raises
        ------
        InputError
            When the recipe cannot learn from this data.
        RunError
            When `out` holds something else.
        """


class WrappedRecipe(Recipe):
    """A recipe that trains no weights: it changes the vectors of a model on their way out."""

    def fit(
        self,
        base: DualEncoder,
        training: Training,
        out: Path,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> DualEncoder:
        """See `Recipe.fit`."""
        record = record_of(self, base, seed, self._inputs(training))
        if not has_model(out, record):
            refuse_occupied(out)
            wrapping = self._wrapping(base, training, progress)
            wrapping = replace(wrapping, record={**record, **wrapping.record})
            with new_run(out) as partial:
                save_wrapped(partial, base.info, wrapping, at=out)
        return reload(f"equipoise:{out}", base)

    def _inputs(self, training: Training) -> Facts:
        return {"texts": digest_of_texts(training.texts), "subjects": sorted(training.subjects)}

    @abstractmethod
    def _wrapping(
        self, base: DualEncoder, training: Training, progress: Progress | None
    ) -> Wrapping:
        """Return what is done to the vectors of the base, with what the record says of it."""


class SetRecipe(WrappedRecipe):
    """A wrapped recipe that learns from the images of all known subjects."""

    def _inputs(self, training: Training) -> Facts:
        sets, known = training.known_images(self.name), training.known
        return {
            "texts": digest_of_texts(known),
            "images": digest_of_images(sets.images, sets.set, *sets.attributes.values()),
            "subjects": sorted(texts.subject for texts in known),
        }


def record_of(
    recipe: Recipe,
    base: DualEncoder,
    seed: int,
    inputs: Record,
    torch: Any = None,
) -> Facts:
    """Return everything that decides a model; nothing of when or where it was made."""
    versions = {"equipoise": __version__}
    if torch is not None:
        versions["torch"] = str(torch.__version__)
    record = {
        **recipe.model_dump(),
        "base": {"key": base.info.key, "weights_sha256": base.info.weights_sha256},
        "seed": seed,
        "inputs": inputs,
        "versions": versions,
    }
    return {**record, "digest": _sha256(record)}


def _sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def digest_of_texts(texts: Sequence[SubjectTexts]) -> str:
    """Return a SHA-256 of the texts of subjects."""
    return _sha256(
        [[own.subject, own.neutral, own.attributed, [*map(dict, own.values)]] for own in texts]
    )


def digest_of_images(images: Any, *columns: Objects) -> str:
    """Return a SHA-256 of images and of their columns."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(json.dumps(column.tolist()).encode())
    for row in range(len(images)):
        digest.update(content_of(images, row))
    return digest.hexdigest()


def has_model(out: Path, record: Record) -> bool:
    """Whether a folder holds the whole model of this record already."""
    trained = (out / RECORD).is_file()
    try:
        known = json.loads((out / (RECORD if trained else SETTINGS)).read_bytes())
        return bool((known if trained else known["record"])["digest"] == record["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def reload(name: str, base: DualEncoder) -> DualEncoder:
    """Load a model that was just written, on the device and with the dtype of its base."""
    from equipoise.models import load_model

    info = base.info
    backend = "auto" if info.backend == "torch" else info.backend
    model: DualEncoder = load_model(
        name, device=info.device, dtype=info.dtype, backend=backend, trust_remote_code=True
    )
    return model


def refuse_occupied(out: Path) -> None:
    """Refuse to write over anything.

    Raises
    ------
    RunError
        When the folder exists and is not empty, or a file has its name.
    """
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise RunError(
            f"{out}: something lies there, and nothing is written over a model. To do: name "
            "another folder, or remove this one"
        )
