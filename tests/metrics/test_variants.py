"""Each comparison of groups in each metric: it finds a planted gap and is quiet without one."""

from inspect import signature

import numpy as np
import pytest

from equipoise import metrics as m
from equipoise.core import InputError
from equipoise.metrics import registry
from equipoise.metrics.numbers.row_metric import RowMetric
from equipoise.stats import Bootstrap

N = 800
FEW = {"resampling": Bootstrap(100, 200, 0.95, 0.005)}
FORMS = (m.RateMetric, m.NumberMetric, m.ScoreMetric, RowMetric)
METRICS = {name: metric for form in FORMS for name, metric in registry.metrics_of(form).items()}
OPTIONS = {
    "hit_rate": {"k": 1},
    "mistake_rate": {"of": "yes", "label": "no"},
    "share_within_tolerance": {"tolerance": 1.0},
}
# Rates that errors of both classes leave unchanged.
ERRORS = {"average_odds": "misses", "selection_rate": "misses"}


def worlds(gap, seed):
    """Return data by the name of their first argument; women's rows are worse by `gap`."""
    rng = np.random.default_rng(seed)
    groups = np.array(["men", "women"])[np.arange(N) % 2]
    worse = (groups == "women") * gap
    truth = np.where(rng.random(N) < 0.6, "yes", "no")
    wrong = rng.random(N) < 0.1 + worse
    predicted = np.where(wrong, np.where(truth == "yes", "no", "yes"), truth)
    missed = np.where((truth == "yes") & wrong, "no", np.where(rng.random(N) < 0.1, "yes", truth))
    draw = rng.random(N)
    states = ["unknown", "refused", "empty", "unresolved"]
    limits = [draw < rank * (0.1 + worse / 2) for rank in (1, 2, 3, 4)]
    unanswered = rng.random(N) < 0.1 + worse / 2
    score = np.where(truth == "yes", 0.7, 0.3) + rng.normal(0, 0.2 + 2 * worse)
    return {
        "labels": (truth, predicted, groups),
        "misses": (truth, missed, groups),
        "y_true_sets": (truth, predicted, groups),
        "answers": (truth, np.where(unanswered, None, predicted), groups),
        "states": (np.select(limits, states, "answered"), groups),
        "values": (np.where(wrong, "", "x"), groups),
        "marks": (wrong, groups),
        "scores": (truth, np.clip(score, 0, 1), groups),
        "numbers": (np.full(N, 30.0), rng.normal(30, 1, N) + 4 * worse, groups),
        "rows": (wrong.astype(float), groups),
    }


PLANTED, EQUAL = worlds(0.3, seed=1), [worlds(0.0, seed) for seed in range(2, 8)]


def world_of(name):
    metric = METRICS[name]
    if isinstance(metric, m.NumberMetric):
        return "numbers"
    if isinstance(metric, m.ScoreMetric):
        return "scores"
    if isinstance(metric, RowMetric):
        return "rows"
    first = next(iter(signature(metric.count).parameters))
    of_answers = name in ("right_rate", "wrong_rate", "unanswered_rate")
    of_labels = "answers" if of_answers else ERRORS.get(name, "labels")
    return of_labels if first == "y_true" else first


def keywords(name):
    metric, options = METRICS[name], OPTIONS.get(name, {})
    of_class = isinstance(metric, m.ScoreMetric) or not getattr(metric, "of_all", True)
    return {**FEW, **options, **({"positive": "yes"} if of_class else {})}


def variants():
    for name, metric in METRICS.items():
        directed = metric.spec.value_harm != "either"
        for method in ("difference", "ratio", "worst_group"):
            if hasattr(metric, method) and (directed or method != "worst_group"):
                yield pytest.param(name, method, {}, id=f"{name} {method}")
        if directed and isinstance(metric, m.RateMetric):
            yield pytest.param(
                name, "difference", {"compared_to": "overall"}, id=f"{name} from overall"
            )


@pytest.mark.parametrize(("name", "method", "options"), [*variants()])
def test_a_planted_gap_has_a_small_p_and_equal_groups_do_not(name, method, options):
    compare, world = getattr(METRICS[name], method), world_of(name)
    options = {**keywords(name), **options}
    planted = compare(*PLANTED[world], **options)
    equal = [compare(*rows[world], **options) for rows in EQUAL]
    assert planted.p_value <= 0.01
    assert sum(estimate.p_value <= 0.05 for estimate in equal) <= 2
    assert planted.compared_to == options.get("compared_to", "")
    for estimate in (planted, *equal):
        ends = estimate.interval()
        assert ends.low <= estimate.value <= ends.high
        assert ends.low < ends.high


RATES = [*registry.metrics_of(m.RateMetric)]


@pytest.mark.parametrize("name", RATES)
def test_the_worst_group_is_on_the_side_that_harms(name):
    metric, rows = METRICS[name], PLANTED[world_of(name)]
    options = {**keywords(name), "resampling": None}
    if metric.spec.value_harm == "either":
        with pytest.raises(InputError, match=name):
            metric.worst_group(*rows, **options)
        with pytest.raises(InputError, match=name):
            metric.difference(*rows, **options, compared_to="overall")
        return
    level = metric(*rows, **options)
    shares = [group.value for group in level.parts[0].by_group]
    worst = max(shares) if metric.spec.harm == "higher" else min(shares)
    assert metric.worst_group(*rows, **options).value == pytest.approx(worst)
    distance = metric.difference(*rows, **options, compared_to="overall").value
    assert distance == pytest.approx(abs(level.value - worst))


@pytest.mark.parametrize("name", [name for name in RATES if not METRICS[name].of_all])
def test_without_a_class_a_difference_is_the_largest_over_classes(name):
    rows, compare = PLANTED[world_of(name)], METRICS[name].difference
    whole = compare(*rows, **FEW)
    gaps = {positive: compare(*rows, positive=positive, **FEW).value for positive in ("yes", "no")}
    ends = whole.interval()
    assert whole.value == pytest.approx(max(gaps.values()))
    assert ends.low <= whole.value <= ends.high
    assert whole.p_value <= 0.01
    with pytest.raises(InputError, match="positive"):
        compare(*rows, compared_to="overall", **FEW)
