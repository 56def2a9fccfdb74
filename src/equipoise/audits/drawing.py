"""How an audit draws: the resampling object that a configuration describes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from equipoise.stats.resampling import Bootstrap, Resampling

if TYPE_CHECKING:
    from equipoise.audits.config_sections import AuditConfig


def resampling_of(config: AuditConfig, tests: int) -> Resampling | None:
    """Return the resampling object that a configuration describes.

    Parameters
    ----------
    config : AuditConfig
    tests : int
        How many tests are corrected together, so that p-values are drawn finely enough.
    """
    options = config.resampling
    if options.method == "none":
        return None
    finest = config.testing.alpha / (10 * max(tests, 1))
    if options.permutations is not None:
        finest = max(finest, 1.0 / options.permutations)
    least = options.permutations or options.replicates
    return Bootstrap(options.replicates, least, options.level, finest)


def tests_by_model(counted: Iterable[tuple[str, int]]) -> Counter[str]:
    """Sum tests by model: those of one are corrected together, whatever others there are.

    Parameters
    ----------
    counted : iterable of (str, int)
        Model and how many tests; a model may come several times.
    """
    found: Counter[str] = Counter()
    for model, tests in counted:
        found[model] += tests
    return found


def most_tests(by_model: Mapping[str, int]) -> int:
    """Return how many tests the model with the most has; 0 without a model."""
    return max(by_model.values(), default=0)
