"""Which numbers a question asks of a model: over which sets, in which modality."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from equipoise.audits.associations.config_measures import MeasureConfig
from equipoise.audits.associations.spaces import MODALITIES, Side, Space

# Members of a target that SC-WEAT measures one by one.
MOST_MEMBERS = 1000
_PAIRS = ("weat", "differential_association")
_TOGETHER = ("total_absolute_association", "alignment", "correlation")
_COMPOSITE = ("mcas", "xmcas")


@dataclass(frozen=True)
class Case:
    """One number, or one for each target.

    Attributes
    ----------
    modality : str
        II, ITP, ITA or TT; "" for metrics over all four and for those of groups of images.
    targets : tuple of str
    """

    modality: str
    targets: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[str, str]:
        """Kind of the attributes and kind of the targets."""
        return MODALITIES[self.modality]


def cases_of(asked: MeasureConfig, space: Space) -> list[Case]:
    """Return what a question asks of a model; nothing where the model cannot answer it."""
    if asked.model not in (None, space.model):
        return []
    if asked.images is not None:
        return [Case("")] if _knows_images(asked, space) else []
    composite = asked.metric in _COMPOSITE or asked.of == "mcas"
    if composite:
        known = tuple(name for name in asked.target_names if _in_all(asked, space, name))
        together = asked.metric in _TOGETHER
        return [Case("", known)] if together and known else [Case("", (one,)) for one in known]
    return [
        case
        for modality in asked.modalities or MODALITIES
        for case in _cases(asked, space, modality)
    ]


def _cases(asked: MeasureConfig, space: Space, modality: str) -> Iterator[Case]:
    attribute_kind, target_kind = MODALITIES[modality]
    known = tuple(
        name
        for name in asked.target_names
        if all(space.meet(name, target_kind, one, attribute_kind) for one in asked.attributes)
    )
    if asked.metric in _PAIRS:
        if len(known) == 2:
            yield Case(modality, known)
    elif asked.metric in _TOGETHER:
        if known:
            yield Case(modality, known)
    else:
        yield from (Case(modality, (one,)) for one in known)


def _in_all(asked: MeasureConfig, space: Space, name: str) -> bool:
    groups = (*asked.attributes, *asked.further)
    return all(
        space.meet(name, target_kind, one, attribute_kind)
        for attribute_kind, target_kind in MODALITIES.values()
        for one in groups
    )


def _knows_images(asked: MeasureConfig, space: Space) -> bool:
    """Whether a model compares the images of a table with the texts that a question names."""
    images = asked.images or ""
    if asked.metric == "label_concentration" and asked.label_column is not None:
        return True
    words = [*asked.labels, *(w for w in (asked.positive, asked.negative) if w is not None)]
    texts = [*words, *asked.attributes]
    if not space.knows(images) or not all(space.tables(name, "text") for name in texts):
        return False
    return all(space.compares(images, table) for w in words for table in space.tables(w, "text"))


def tests_of(asked: MeasureConfig, space: Space) -> int:
    """Return how many tests a question makes of one model."""
    cases = cases_of(asked, space)
    if asked.metric == "sc_weat":
        return sum(_members(space, case) for case in cases)
    if asked.metric in ("xmcas",):
        return 0
    if asked.metric in ("trend", "gender_difference"):
        return len(cases) * _region_tests(asked, space)
    return len(cases)


def tests_between(asked: MeasureConfig, spaces: Iterable[Space]) -> int:
    """Return about how many tests a question makes of differences between models."""
    if asked.metric != "total_absolute_association":
        return 0
    models = Counter(case.modality for space in spaces for case in cases_of(asked, space))
    return sum(n * (n - 1) // 2 for n in models.values())


def _region_tests(asked: MeasureConfig, space: Space) -> int:
    coded = space.data.items[asked.images or ""].coded
    figures = asked.outside is not None
    if asked.metric == "trend":
        return len(coded[asked.groups or ""].vocabulary) if figures else 0
    regions = 1 if asked.regions is None else len(coded[asked.regions].vocabulary)
    return (regions if regions > 1 else 0) + 1 + figures


def _members(space: Space, case: Case) -> int:
    found: Side | None = space.side(case.targets[0], case.kinds[1])
    return 0 if found is None else len(found)
