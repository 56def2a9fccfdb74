"""Texts that stand for classes, and one vector for each class made of theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.data import filled
from equipoise.data import templates as named

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Prompts:
    """Texts, and the class that each stands for.

    Attributes
    ----------
    texts : tuple of str, length p
        All texts of the first class, then of the second, ...
    owner : ndarray of int64, shape (p,)
        Place of each text's class in `names`.
    names : tuple of str, length m
        The classes.
    """

    texts: tuple[str, ...]
    owner: Places
    names: tuple[str, ...]


def prompts(
    classes: Mapping[str, Sequence[str]] | Sequence[str], templates: str | Sequence[str] = "plain"
) -> Prompts:
    """Put the words of each class into each template.

    Parameters
    ----------
    classes : mapping of str to sequence of str, or sequence of str
        Class to its words; or classes that are their own word.
    templates : str or sequence of str
        Name of a list of `equipoise.data.TEMPLATES`, or templates with one `{}` each; `("{}",)`
        takes the words as they are.

    Raises
    ------
    InputError
        When there is no class, no word of a class or no template, or one of them repeats.
    """
    chosen = named(templates).texts if isinstance(templates, str) else tuple(templates)
    _check("templates", chosen)
    words = (
        {name: tuple(some) for name, some in classes.items()}
        if isinstance(classes, Mapping)
        else {name: (name,) for name in _check("classes", tuple(classes))}
    )
    _check("classes", tuple(words))
    made = [
        [
            filled(template, word)
            for word in _check(f"words of {name!r}", some)
            for template in chosen
        ]
        for name, some in words.items()
    ]
    owner = np.repeat(np.arange(len(made), dtype=np.int64), [len(texts) for texts in made])
    return Prompts(tuple(text for texts in made for text in texts), owner, tuple(words))


def _check(what: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    if not texts:
        raise InputError(f"there are no {what}; expected at least one")
    repeated = sorted({text for text in texts if texts.count(text) > 1})
    if repeated:
        raise InputError(f"the {what} hold {repeated[0]!r} more than once; give it once")
    return texts


def class_vectors(vectors: npt.ArrayLike, owner: npt.ArrayLike) -> Floats:
    """Return one vector of length 1 for each class.

    Every text's vector is brought to length 1, those of a class are averaged, and the mean is
    brought to length 1 again, as in the zero-shot classifiers of CLIP.

    Parameters
    ----------
    vectors : array_like of float, shape (p, d)
        Of the texts.
    owner : array_like of int, shape (p,)
        Class of each text; classes are 0 to m - 1 and each has a text.

    Returns
    -------
    ndarray of float64, shape (m, d)

    Raises
    ------
    InputError
        When a vector is zero or not finite, or the vectors of a class cancel out.

    References
    ----------
    Radford et al. 2021, "Learning Transferable Visual Models From Natural Language Supervision".
    """
    unit, place = units(vectors, what="text"), np.asarray(owner, dtype=np.int64)
    classes = int(place.max()) + 1
    sums = np.zeros((classes, unit.shape[1]))
    np.add.at(sums, place, unit)
    means = sums / np.bincount(place, minlength=classes)[:, None]
    return units(means, what="class")


def units(vectors: npt.ArrayLike, *, what: str, first: int = 0) -> Floats:
    """Return vectors at length 1, in float64.

    Parameters
    ----------
    vectors : array_like of float, shape (n, d)
    what : str
        What a row is, for the message.
    first : int
        Number of the first row, for the message.

    Raises
    ------
    InputError
        When there is no row, or one is zero or not finite.
    """
    given = np.asarray(vectors, dtype=np.float64)
    if given.ndim != 2 or not given.size:
        raise InputError(
            f"the vectors have shape {given.shape}; expected one row for each {what}, and at "
            "least one"
        )
    lengths = np.sqrt(np.einsum("ij,ij->i", given, given))
    wrong = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(wrong):
        row = int(wrong[0])
        state = "zero" if lengths[row] == 0 else "not finite"
        raise InputError(
            f"the vector of {what} {first + row} is {state}: it has no direction. To do: leave "
            f"that {what} out, or look at the model"
        )
    unit: Floats = given / lengths[:, None]
    return unit
