"""The audit of diversity in its three steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.audits.diversity import loading
from equipoise.audits.diversity.config import reference_name
from equipoise.audits.diversity.loading import DiversityData, Part, parts
from equipoise.audits.diversity.measuring import measure_part, tests_of
from equipoise.audits.diversity.tables import tables_of
from equipoise.audits.drawing import most_tests, tests_by_model
from equipoise.audits.kinds import Measured, Progress, drafts_of, estimated_seconds, told
from equipoise.core.errors import DataError
from equipoise.core.wording import images as of_images

if TYPE_CHECKING:
    from equipoise.audits.diversity.config import Config

# Sets that an error lists.
_LISTED = 10
# Numbers read in a second by one pass over embeddings, and by a permutation: rough guides.
_PASS, _SHUFFLE = 5e8, 1e9


def load(config: Config, *, base: Path) -> DiversityData:
    """Read the images and every model's embeddings, see `loading.load`."""
    return loading.load(config, base=base)


def measure(config: Config, data: DiversityData, progress: Progress | None) -> Measured:
    """Measure the sets of every model and choice of attributes.

    Raises
    ------
    DataError
        When no choice of attributes leaves two sets to compare, or their images are fewer than
        `metrics.components`.
    """
    every = _checked(config, data)
    tests = _tests(every)
    measured = [
        measure_part(part, config, data, tests[part.model])
        for part in told(every, progress, "measuring")
    ]
    return Measured(drafts_of(measured), tables_of(measured, data), tuple(_notes(every, data)))


def _tests(every: Sequence[Part]) -> Counter[str]:
    return tests_by_model((part.model, tests_of(part)) for part in every)


@dataclass(frozen=True)
class Plan:
    """What an audit of diversity would do.

    Attributes
    ----------
    images : int
    models : list of dict
        Per model: numbers per embedding, images with a usable one, without one, and with one
        that is zero or not finite.
    sets : list of dict
        Per model, attributes and value of `within`: sets measured, the smallest, and those that
        are too small.
    tests : int
        How many there are to correct for, of the model with the most.
    seconds : float
        A rough guide.
    """

    images: int
    models: list[dict[str, Any]]
    sets: list[dict[str, Any]]
    tests: int
    seconds: float


def plan(config: Config, data: DiversityData) -> Plan:
    """Say what the audit would do.

    Raises
    ------
    DataError
        See `measure`.
    """
    every = _checked(config, data)
    return Plan(
        images=len(data.images),
        models=[
            {
                "model": name,
                "dimension": one.dimension,
                "usable": int(one.usable.sum()),
                "without_embedding": one.without_vector.rows,
                "zero": int(one.zero.sum()),
                "not_finite": int(one.not_finite.sum()),
            }
            for name, one in data.models.items()
        ],
        sets=[
            {
                "model": part.model,
                "groups": part.groups,
                "within": part.within,
                "sets": len(part.sets),
                "smallest": min((len(x) for x in part.sets.values()), default=0),
                "too_small": len(part.small),
            }
            for part in every
        ],
        tests=most_tests(_tests(every)),
        seconds=estimated_seconds(sum(_seconds(part, config) for part in every)),
    )


def _seconds(part: Part, config: Config) -> float:
    numbers = sum(one.size for one in part.sets.values())
    shuffles = config.resampling.permutations or config.resampling.replicates
    return float(2 * len(part.sets) * numbers / _PASS + shuffles * numbers / _SHUFFLE)


def _checked(config: Config, data: DiversityData) -> list[Part]:
    """Return every part; refuse sets that cannot be compared, and too many components."""
    every = [*parts(config, data)]
    _check_sets(every, config, data)
    _check_components(every, config, data)
    return every


def _check_sets(every: list[Part], config: Config, data: DiversityData) -> None:
    if any(len(part.sets) > 1 for part in every):
        return
    raise DataError(
        f"no choice of sets leaves two with {config.data.min_set_size} images and an embedding",
        file=data.images.name,
        expected="at least two sets of that size",
        fix="choose other attributes under data.sets, or lower data.min_set_size",
    )


def _check_components(every: list[Part], config: Config, data: DiversityData) -> None:
    """Refuse a projection on more components than a part has images or dimensions."""
    wanted = config.metrics.components
    for part in every:
        # A part's sets are projected together, and the references with them.
        sizes = {name: len(images) for name, images in part.sets.items()}
        for name, models in data.references.items():
            if part.model in models:
                sizes[reference_name(name)] = int(models[part.model].usable.sum())
        dimension = data.models[part.model].dimension
        most = min(sum(sizes.values()), dimension)
        if wanted is None or not part.sets or wanted <= most:
            continue
        shown = ", ".join(f"{name}: {n}" for name, n in [*sizes.items()][:_LISTED])
        shown += ", …" if len(sizes) > _LISTED else ""
        where = ", ".join(text for text in (part.model, part.groups, part.within) if text)
        raise DataError(
            f"metrics.components: {wanted} is more than the images of {where} ({shown}) or the "
            f"{dimension} numbers of an embedding allow",
            file=data.images.name,
            expected=f"at most {most}",
            fix=f"lower metrics.components to {most}, or leave it out",
        )


def _notes(every: list[Part], data: DiversityData) -> Iterator[str]:
    yield (
        "Sets are as the data label them; perceived attributes are no identities. Distances are "
        "those of the embedding: what it does not see is in no number here."
    )
    yield "Images are taken as independent: near duplicates make intervals too narrow."
    for name, one in data.models.items():
        if one.rescaled:
            yield f"{name}: the embeddings are not of length 1; they are normalised."
        for count, what in (
            (one.without_vector.untold, "no embedding"),
            (int(one.zero.sum()), "an embedding of zeros"),
            (int(one.not_finite.sum()), "an embedding that is not finite"),
        ):
            if count:
                many, single = f"have {what} and are not used", f"has {what} and is not used"
                yield f"{name}: {of_images(count, many, single)}."
    yield from _missing(data)
    for part in every:
        if part.small:
            few = ", ".join(f"{name} ({n})" for name, n in [*part.small.items()][:10])
            more = ", …" if len(part.small) > 10 else ""
            where = ", ".join(text for text in (part.model, part.groups, part.within) if text)
            yield f"{where}: too small to be measured: {few}{more}."


def _missing(data: DiversityData) -> Iterator[str]:
    for name, count in data.images.counts["missing"].items():
        if count:
            many, single = f"have no {name} and are in", f"has no {name} and is in"
            yield f"{of_images(count, many, single)} no set of it."
