"""Which numbers a question asks of a model: over which sets, in which modality."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from equipoise.audits.config_associations import MeasureConfig
from equipoise.audits.engines.associations.spaces import MODALITIES, Space, targets_alone

# Members of a target that SC-WEAT measures one by one.
MOST_MEMBERS = 1000
_PAIRS = ("weat", "differential_association")
_TOGETHER = ("total_absolute_association", "alignment", "correlation")
# Metrics that compare several targets with the same members of a set.
_AT_ONCE = (*_PAIRS, "total_absolute_association")
# Kinds of which both targets and attributes are taken, by modality.
_ALIKE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"": ("image", "text"), "II": ("image",), "TT": ("text",)}
)


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

    @property
    def kinds_alike(self) -> tuple[str, ...]:
        """Kinds of which both targets and attributes are taken."""
        return _ALIKE.get(self.modality, ()) if self.targets else ()


def cases_of(options: MeasureConfig, space: Space) -> list[Case]:
    """Return what a question asks of a model; nothing where the model cannot answer it."""
    if options.model not in (None, space.model):
        return []
    if options.images is not None:
        return [Case("")] if _knows_images(options, space) else []
    if options.is_composite:
        known = tuple(name for name in options.target_names if _in_all(options, space, name))
        together = options.metric in _TOGETHER
        return [Case("", known)] if together and known else [Case("", (name,)) for name in known]
    return [
        case
        for modality in options.modalities or MODALITIES
        for case in _cases(options, space, modality)
    ]


def _cases(options: MeasureConfig, space: Space, modality: str) -> Iterator[Case]:
    attribute_kind, target_kind = MODALITIES[modality]
    known = tuple(
        name
        for name in options.target_names
        if all(space.meet(name, target_kind, each, attribute_kind) for each in options.attributes)
    )
    if options.metric in _PAIRS:
        if len(known) == 2:
            yield Case(modality, known)
    elif options.metric in _TOGETHER:
        if known:
            yield Case(modality, known)
    else:
        yield from (Case(modality, (name,)) for name in known)


def _in_all(options: MeasureConfig, space: Space, name: str) -> bool:
    return all(
        space.meet(name, target_kind, group, attribute_kind)
        for attribute_kind, target_kind in MODALITIES.values()
        for group in (*options.attributes, *options.further)
    )


def _knows_images(options: MeasureConfig, space: Space) -> bool:
    """Whether a model compares the images of a table with the texts that a question names."""
    images = options.images or ""
    if options.metric == "label_concentration" and options.label_column is not None:
        return True
    words = [*options.labels, *filter(None, (options.positive, options.negative))]
    texts = [*words, *options.attributes]
    if not space.knows(images) or not all(space.tables(name, "text") for name in texts):
        return False
    return all(space.compares(images, table) for w in words for table in space.tables(w, "text"))


def tests_of(options: MeasureConfig, space: Space) -> int:
    """Return how many tests a question makes of one model."""
    cases = cases_of(options, space)
    if options.metric == "sc_weat":
        sides = (space.side(case.targets[0], case.kinds[1]) for case in cases)
        return sum(0 if side is None else len(side) for side in sides)
    if options.metric == "xmcas":
        return 0
    if options.metric in ("trend", "gender_difference"):
        return len(cases) * _region_tests(options, space)
    return len(cases)


def tests_between(options: MeasureConfig, spaces: Iterable[Space]) -> int:
    """Return about how many tests a question makes of differences between models."""
    if options.metric != "total_absolute_association":
        return 0
    models = Counter(case.modality for space in spaces for case in cases_of(options, space))
    return sum(n * (n - 1) // 2 for n in models.values())


def _region_tests(options: MeasureConfig, space: Space) -> int:
    coded = space.data.items[options.images or ""].coded
    figures = options.outside is not None
    if options.metric == "trend":
        return len(coded[options.groups or ""].vocabulary) if figures else 0
    regions = 1 if options.regions is None else len(coded[options.regions].vocabulary)
    return (regions if regions > 1 else 0) + 1 + figures


def targets_apart(options: MeasureConfig, target: str) -> tuple[str, ...]:
    """Return the targets that are left out of the attributes where one is a target."""
    return options.target_names if options.metric in _AT_ONCE else (target,)


def check_apart(options: MeasureConfig, space: Space) -> None:
    """Refuse a question whose targets are all that a model can use of a set of attributes."""
    if options.metric == "sc_weat":
        return
    for case in cases_of(options, space):
        groups = dict.fromkeys(
            case.targets if options.metric in _AT_ONCE else (target,) for target in case.targets
        )
        for kind in case.kinds_alike:
            for name in (*options.attributes, *options.further):
                for targets in groups:
                    usable, apart = space.usable_apart(name, kind, targets)
                    if usable and not apart:
                        raise targets_alone(space.model, kind, name, targets)
