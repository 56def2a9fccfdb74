"""What every recipe offers: fitted on some subjects, it is a model with a name of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from equipoise.core.errors import InputError, RunError
from equipoise.mitigate.sets import ImageSets, Pairs, SubjectTexts, joined
from equipoise.mitigate.split import check_split

if TYPE_CHECKING:
    from equipoise.models import DualEncoder

Progress = Callable[[str, int, int | None], None]
"""Told the step, what is done and what there is to do."""


@dataclass(frozen=True, eq=False)
class Training:
    """What a recipe may learn from, and what it may stop by.

    Attributes
    ----------
    texts : tuple of SubjectTexts
        Of the subjects to learn from.
    validation : tuple of SubjectTexts
        Of other subjects, on which a loss is watched while training; may be empty.
    images, validation_images : ImageSets, optional
        Of the same subjects.
    pairs : Pairs, optional
        Of one's own, mixed in.
    """

    texts: tuple[SubjectTexts, ...]
    validation: tuple[SubjectTexts, ...] = ()
    images: ImageSets | None = field(default=None, repr=False)
    validation_images: ImageSets | None = field(default=None, repr=False)
    pairs: Pairs | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        learned, watched = self.subjects, {one.subject for one in self.validation}
        if not learned:
            raise InputError("there is no subject to learn from")
        if watched:
            check_split(learned, watched)
        for images, known in ((self.images, {*learned}), (self.validation_images, watched)):
            unknown = sorted({*images.subjects} - known) if images is not None else []
            if unknown:
                raise InputError(
                    f"there are images of {unknown[0]!r}, which is not among the texts of its side "
                    "of the split"
                )

    @property
    def subjects(self) -> tuple[str, ...]:
        """The subjects to learn from, in the order of their texts."""
        return tuple(one.subject for one in self.texts)

    @property
    def known(self) -> tuple[SubjectTexts, ...]:
        """Texts of all subjects that may be looked at: to learn from, and to watch."""
        return (*self.texts, *self.validation)

    def known_images(self, recipe: str, *, watched: bool = True) -> ImageSets:
        """Return the images of these subjects, for a recipe that cannot do without.

        Parameters
        ----------
        recipe : str
            Its name.
        watched : bool
            Whether those of the subjects to watch are among them.

        Raises
        ------
        InputError
            When there are none.
        """
        every = (self.images, self.validation_images if watched else None)
        images = [one for one in every if one]
        if not images:
            raise InputError(f"{recipe} learns from images, and there are none of its subjects")
        return images[0] if len(images) == 1 else joined(images)


class Recipe(Protocol):
    """A way to lower a disparity of a dual encoder."""

    @property
    def name(self) -> str:
        """What the recipe is called in configurations and reports."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """Its settings, as they stand in the record beside the model."""
        ...

    def fit(
        self,
        base: DualEncoder,
        training: Training,
        out: Path,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> DualEncoder:
        """Learn from some subjects and write a model, whose `info.key` is another than the base's.

        Parameters
        ----------
        base : DualEncoder
            Not changed.
        training : Training
        out : Path
            Folder of the new model: missing, or empty.
        seed : int
        progress : callable, optional

        Returns
        -------
        DualEncoder
            Loaded from `out`; `info.name` loads it again.
        """
        ...


def refuse_occupied(out: Path) -> None:
    """Refuse to write over anything: a model that is there stays as it is.

    Raises
    ------
    RunError
        When the folder is there and not empty, or a file has its name.
    """
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise RunError(
            f"{out}: something lies there, and nothing is written over a model. To do: name "
            "another folder, or remove this one"
        )
