"""What an image counts as in the rate behind a metric."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from equipoise.core import Booleans
from equipoise.metrics.labels.rate import Rate
from equipoise.metrics.labels.rates import rate_named
from equipoise.metrics.spec import spec_of


class Outcome(NamedTuple):
    """The share of images that a rate is, where groups are compared.

    Attributes
    ----------
    counts : callable
        Whether each image counts, from whether it is predicted as the subject and is of it.
    about : callable or None
        Whether the rate is about each image, from the same; None: about all.
    shows : str
        The share in words, with the field {subject}.
    """

    counts: Callable[[Booleans, Booleans], Booleans]
    about: Callable[[Booleans, Booleans], Booleans] | None
    shows: str


_OUTCOMES: Mapping[frozenset[str], Outcome] = MappingProxyType(
    {
        frozenset({"right"}): Outcome(
            lambda predicted, actual: predicted == actual,
            None,
            "accuracy of “{subject}” against all other classes",
        ),
        frozenset({"both"}): Outcome(
            lambda predicted, _: predicted,
            lambda _, actual: actual,
            "share of “{subject}” that the model recognises",
        ),
        frozenset({"wrong"}): Outcome(
            lambda predicted, _: predicted,
            lambda _, actual: ~actual,
            "share of other images that are called “{subject}”",
        ),
        frozenset({"prediction"}): Outcome(
            lambda predicted, _: predicted, None, "share called “{subject}”"
        ),
        frozenset({"both", "wrong"}): Outcome(
            lambda _, actual: actual,
            lambda predicted, _: predicted,
            "share of images called “{subject}” whose label agrees",
        ),
    }
)
"""By the cells of the table of predictions and labels that a rate counts."""


def rate_of(metric: str) -> Rate | None:
    """Return the rate in whose images groups differ where they do in a metric, if there is one.

    A metric is a rate itself, states the same fact as one, or combines rates, first of all one.
    """
    spec = spec_of(metric)
    for name in (metric, spec.fold, spec.rest_metric, *spec.combines):
        rate = rate_named(name)
        if rate is not None and _cells_of(rate) in _OUTCOMES:
            return rate
    return None


def outcome_of(rate: Rate) -> Outcome:
    """Return what an image counts as in a rate that `rate_of` gives."""
    return _OUTCOMES[_cells_of(rate)]


def counts_false_alarms(metric: str) -> bool:
    """Whether images that are wrongly called the subject decide a metric."""
    rate = rate_of(metric)
    return rate is not None and "wrong" in _cells_of(rate)


def _cells_of(rate: Rate) -> frozenset[str]:
    """Return the cells that a share counts; none of a mean of shares."""
    return rate.numerators if rate.is_share else frozenset()
