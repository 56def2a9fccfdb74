"""What a model that is run predicts: the best classes of each image, or its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.errors import ConfigError
from equipoise.data.problems import nearest
from equipoise.data.sources import Offered
from equipoise.data.versions import MISSPELT
from equipoise.evidence.prompts import Prompts, prompts
from equipoise.evidence.zero_shot import activation_of, best, zero_shot

if TYPE_CHECKING:
    from equipoise.audits.predictions.config_inputs import ModelConfig
    from equipoise.audits.running.runner import Offer, Ran, Runner
    from equipoise.evidence import Pictures

Objects = npt.NDArray[np.object_]
Floats = npt.NDArray[np.float64]

# What a plan takes for an answer, and for a class of a classifier whose classes are not known yet.
_STAND_IN = "(not yet known)"


@dataclass(frozen=True, eq=False)
class Chosen:
    """What a model predicts for images.

    Attributes
    ----------
    ids : list of str, length n
        Of the images that it had something to say of.
    labels : ndarray of str objects, shape (n, k)
        By rank.
    ran : tuple of Ran
    free : bool
        Whether labels may be any text.
    offered : Offered, optional
        Of a model that is yet to run: what the labels only stand in for.
    """

    ids: list[str]
    labels: Objects
    ran: tuple[Ran, ...]
    free: bool = False
    offered: Offered | None = None


def offers(given: ModelConfig) -> tuple[Offer, ...]:
    """Return what a model may be, by what it is given."""
    if given.question is not None:
        return ("answerer",)
    return ("encoder", "scorer") if given.vocabulary is not None else ("classifier", *_NEEDY)


_NEEDY: tuple[Offer, ...] = ("encoder", "scorer", "answerer")
_NEEDS: Mapping[str, str] = MappingProxyType(
    {
        "encoder": "'vocabulary'. To do: list the classes that it chooses between",
        "scorer": "'vocabulary'. To do: list the classes that it chooses between",
        "answerer": "'question'. To do: give what it is asked about each image",
    }
)


def by_similarity(runner: Runner, name: str, given: ModelConfig, pictures: Pictures) -> Chosen:
    """Rank the classes of a vocabulary by a dual encoder's similarities."""
    texts = _prompts(runner, name, given, "encoder")
    classes = runner.texts(name, given, texts, what="vocabulary")
    images = runner.images(name, given, pictures)
    info = images.info
    found = zero_shot(
        _matrix(images.table["embedding"]),
        _matrix(classes.table["embedding"]),
        scale=info.get("scale") or 1.0,
        bias=info.get("bias") or 0.0,
        activation=activation_of(info),
        k=given.k,
    )
    return _vocabulary(images, texts.names, found.top, (images, classes))


def by_pair_scores(runner: Runner, name: str, given: ModelConfig, pictures: Pictures) -> Chosen:
    """Rank the classes of a vocabulary by the mean score of their texts."""
    texts = _prompts(runner, name, given, "scorer")
    scored = runner.scores(name, given, pictures, texts.texts)
    column = {text: place for place, text in enumerate(scored.names)}
    values = _matrix(scored.table["values"])[:, [column[text] for text in texts.texts]]
    sums = np.add.reduceat(values, np.flatnonzero(np.diff(texts.owner, prepend=-1)), axis=1)
    means = np.round(sums / np.bincount(texts.owner), 12)
    return _vocabulary(scored, texts.names, best(means, given.k), (scored,))


def _vocabulary(
    ran: Ran, classes: tuple[str, ...], top: npt.NDArray[Any], every: tuple[Ran, ...]
) -> Chosen:
    """Return the classes of a vocabulary by rank."""
    offered = Offered(classes, top.shape[1], chosen=True) if ran.pending else None
    return Chosen(_ids(ran), _named(classes, top), every, offered=offered)


def by_probability(runner: Runner, name: str, given: ModelConfig, pictures: Pictures) -> Chosen:
    """Rank the classes that a classifier has itself."""
    ran = runner.probabilities(name, given, pictures)
    _check_map(name, given, ran.names or ran.info.get("labels", ()))
    names = ran.names or (_STAND_IN,)
    places = best(_matrix(ran.table["values"]), given.k)
    own = tuple(ran.info.get("labels", ())) if ran.pending else ()
    offered = Offered(own, min(given.k, len(own)), chosen=False) if own else None
    free = not ran.names and offered is None
    return Chosen(_ids(ran), _named(names, places), (ran,), free, offered)


def _check_map(name: str, given: ModelConfig, classes: Sequence[str]) -> None:
    """Refuse an entry of a map that looks like a class which the map does not name."""
    every = {"map": given.map or {}} if given.maps is None else given.maps
    for key, mapping in every.items():
        left = [one for one in classes if one not in mapping]
        for entry in mapping:
            near = None if entry in classes else nearest(entry, left, least=MISSPELT)
            if near is not None:
                place = "map" if given.maps is None else f"maps.{key}"
                raise ConfigError(
                    f"models.{name}.{place}: {given.called} has no class {entry!r}; did you mean "
                    f"{near!r}?"
                )


def by_answer(runner: Runner, name: str, given: ModelConfig, pictures: Pictures) -> Chosen:
    """Take the answers to a question."""
    if given.question is None:
        raise _lacking(name, given, "answerer")
    ran = runner.answers(name, given, pictures, given.question)
    column = ran.table["answer"]
    texts = np.full((len(column), 1), _STAND_IN, dtype=object)
    if not ran.pending:
        texts[:, 0] = column.to_pylist()
    return Chosen(_ids(ran), texts, (ran,), free=True)


MAKERS: Mapping[Offer, Callable[[Runner, str, ModelConfig, Pictures], Chosen]] = MappingProxyType(
    {
        "encoder": by_similarity,
        "scorer": by_pair_scores,
        "classifier": by_probability,
        "answerer": by_answer,
    }
)


def ranked_table(made: Chosen) -> tuple[pa.Table, tuple[str, ...]]:
    """Return a table of predictions and the names of its columns of ranks."""
    ranks = tuple(f"rank {rank}" for rank in range(1, made.labels.shape[1] + 1))
    columns = {
        name: pa.array(made.labels[:, place].tolist(), pa.string())
        for place, name in enumerate(ranks)
    }
    return pa.table({"image_id": pa.array(made.ids, pa.string()), **columns}), ranks


def _prompts(runner: Runner, name: str, given: ModelConfig, offer: Offer) -> Prompts:
    if given.vocabulary is None:
        raise _lacking(name, given, offer)
    return prompts(given.vocabulary.read(runner.base), given.templates)


def _lacking(name: str, given: ModelConfig, offer: Offer) -> ConfigError:
    from equipoise.audits.running.runner import WORDS

    model: Any = given.model
    shown = model if isinstance(model, str) else model.info.name
    return ConfigError(f"models.{name}: {shown} is {WORDS[offer]} and needs a {_NEEDS[offer]}")


def _ids(ran: Ran) -> list[str]:
    found: list[str] = ran.table["id"].to_pylist()
    return found


def _matrix(column: Any) -> Any:
    """Return a column of lists of one length as a matrix."""
    cells = column.combine_chunks()
    return cells.flatten().to_numpy(zero_copy_only=False).reshape(len(cells), -1)


def _named(names: tuple[str, ...], places: npt.NDArray[np.int64]) -> Objects:
    labels = np.array(names, dtype=object)
    chosen: Objects = labels[places]
    return chosen
