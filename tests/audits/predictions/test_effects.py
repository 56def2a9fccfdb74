"""Effect sizes beside the tested ones: statistics, versions, correlations and models."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from equipoise import audits
from equipoise.audits.labels.predictions.effect_page import bands, over_models
from equipoise.core import ConfigError
from equipoise.report.blocks import Table

CLASSES = [f"class {number}" for number in range(6)]
MODELS = ("a", "b", "c")


@pytest.fixture(scope="module")
def frame():
    """Predictions of three models, whose mistakes depend on the group by class and model."""
    rng = np.random.default_rng(3)
    rows = []
    for place, name in enumerate(CLASSES):
        for number in range(240):
            group = ("x", "y")[number % 2]
            row = {"id": f"{name} {number}", "target": name, "group": group}
            for index, model in enumerate(MODELS):
                wrong = rng.random() < 0.2 + 0.05 * index + 0.1 * (place % 3 == 0) * (group == "x")
                shift = 1 + (rng.random() < 0.5 + 0.08 * place * (group == "x"))
                row[model] = CLASSES[(place + shift) % 6] if wrong else name
            rows.append(row)
    return pl.DataFrame(rows)


def run(frame, *, models=MODELS, **metrics):
    config = {
        "audit": "predictions",
        "data": {"table": frame, "id": "id", "target": "target", "groups": ["group"]},
        "models": {name: {"table": frame, "prediction": name} for name in models},
        "metrics": metrics,
        "resampling": {"replicates": 50, "permutations": 99},
    }
    return audits.run(audits.parse_config(config))


@pytest.fixture(scope="module")
def result(frame):
    effects = {
        "statistic": ["cramers_v", "phi", "tschuprows_t"],
        "min_expected": 3,
        "sweep": [2, 6],
        "versions": {"as listed": {"yates": True, "min_expected": 0}},
    }
    return run(frame, effect_sizes=effects)


def values(result, metric, version="default", model="a"):
    return {
        finding.subject: finding.value
        for finding in result.findings
        if (finding.metric, finding.version, finding.model) == (metric, version, model)
    }


def test_further_statistics_are_of_the_same_tables(result, frame):
    v, phi, t = (values(result, name) for name in ("cramers_v", "phi", "tschuprows_t"))
    assert {*v} == {*phi} == {*t} == {*CLASSES}
    for name in CLASSES:
        table = crosstab(frame, name)
        smaller, larger = sorted(size - 1 for size in kept(table, 3).shape)
        assert phi[name] == pytest.approx(v[name] * np.sqrt(smaller))
        assert t[name] == pytest.approx(phi[name] / (smaller * larger) ** 0.25)
    further = [f for f in result.findings if f.metric in ("phi", "tschuprows_t")]
    assert not any(finding.tested for finding in further)
    assert all(finding.tested for finding in result.findings if finding.metric == "effect_size_mean"
               and finding.version == "default")  # fmt: skip


def crosstab(frame, name, model="a"):
    """Return counts of groups by predicted labels of a class."""
    rows = frame.filter(pl.col("target") == name)
    labels = rows[model].unique(maintain_order=True)
    return np.array([
        [rows.filter((pl.col("group") == group) & (pl.col(model) == label)).height
         for label in labels]
        for group in ("x", "y")
    ])  # fmt: skip


def kept(table, least):
    """Return a table without labels whose smallest expected count is below `least`."""
    return table[:, stats.contingency.expected_freq(table).min(axis=0) >= least]


def test_a_version_is_the_published_listing(result, frame):
    """Computed as the listing does: scipy's chi-square with Yates' correction, no filter."""
    listed = {}
    for name in CLASSES:
        table = crosstab(frame, name)
        chi2 = stats.chi2_contingency(table)[0]
        listed[name] = np.sqrt(chi2 / (table.sum() * (min(table.shape) - 1)))
    version = "default, as listed"
    assert values(result, "cramers_v", version) == pytest.approx(listed)
    (skewsize,) = values(result, "skewsize", version).values()
    assert skewsize == pytest.approx(stats.skew([*listed.values()]))
    findings = [finding for finding in result.findings if finding.version == version]
    assert findings
    assert not any(finding.tested for finding in findings)


def test_a_version_has_the_options_that_it_leaves_out(result, frame):
    three = run(frame, models=("a",), effect_sizes={"min_expected": 3, "versions": {"same": {}}})
    assert values(three, "cramers_v", "default, same") == values(three, "cramers_v")
    assert values(three, "cramers_v") == pytest.approx(values(result, "cramers_v"))


def test_the_sweep_is_among_the_findings(result):
    swept = {row["min_expected"]: row["skewsize"] for row in result.tables["mev_sweep"].to_pylist()
             if row["model"] == "b"}  # fmt: skip
    for minimum, skewsize in swept.items():
        version = f"default, minimum expected count {minimum:g}"
        assert values(result, "skewsize", version, "b") == {"": pytest.approx(skewsize)}


def test_correlations_over_classes_are_scipys(result):
    classes = [row for row in result.tables["classes"].to_pylist() if row["model"] == "a"]
    effects = [row["effect_size"] for row in classes]
    metrics = {"accuracy": "accuracy", "equalized_odds": "odds", "gap": "gap",
               "demographic_parity": "parity"}  # fmt: skip
    for column, name in metrics.items():
        expected = stats.pearsonr(effects, [row[column] for row in classes])
        (finding,) = (f for f in result.findings if f.model == "a"
                      and f.metric == f"effect_{name}_correlation")  # fmt: skip
        assert finding.value == pytest.approx(expected.statistic)
        assert finding.parameters["p_value"] == pytest.approx(expected.pvalue)
        ends = expected.confidence_interval()
        assert (finding.ci_low, finding.ci_high) == pytest.approx((ends.low, ends.high))
        assert finding.n == len(classes)
        assert not finding.tested


def test_models_are_shown_beside_their_accuracy(result):
    profiles = {row["model"]: row for row in result.tables["model_profiles"].to_pylist()
                if row["version"] == "default"}  # fmt: skip
    assert {*profiles} == {*MODELS}
    for name, row in profiles.items():
        assert {"": row["skewsize"]} == values(result, "skewsize", model=name)
        assert row["accuracy"] - row["worst_group_accuracy"] == pytest.approx(row["accuracy_gap"])
    series = [[row[key] for row in profiles.values()] for key in ("skewsize", "accuracy")]
    (related,) = (row for row in result.tables["model_correlations"].to_pylist()
                  if row["y"] == "accuracy")  # fmt: skip
    assert related["pearson"] == pytest.approx(stats.pearsonr(*series).statistic)
    assert related["models"] == 3
    assert over_models(result) is not None


def test_two_models_have_no_trend(frame):
    two = run(frame, models=MODELS[:2])
    assert two.tables["model_correlations"].num_rows == 0
    assert over_models(two) is None


def test_bands_count_every_class_that_can_be_estimated(result):
    (table,) = (block for block in bands(result).blocks if isinstance(block, Table))
    counts = {row[0]: [int(str(cell)) for cell in row[2:7]] for row in table.rows}
    assert {*counts} == {*MODELS}
    for name, (*by_band, total) in counts.items():
        effects = [*values(result, "cramers_v", model=name).values()]
        assert sum(by_band) == total == len(effects)
        assert by_band[0] == sum(effect < 0.1 for effect in effects)


@pytest.mark.parametrize(
    "options",
    [
        {"statistic": []},
        {"statistic": ["phi", "phi"]},
        {"versions": {"x": {"statistic": ["phi"]}}},
        {"versions": {"x": {"sweep": [1]}}},
    ],
)
def test_bad_options_are_refused(options, frame):
    with pytest.raises(ConfigError):
        run(frame, effect_sizes=options)
