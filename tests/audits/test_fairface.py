"""The example configuration on real data: what it must find, and that it finds it twice."""

from pathlib import Path

import pytest

from equipoise import audits
from equipoise.core import NullHypothesis, Verdict

EXAMPLE = Path(__file__).parents[2] / "examples" / "predictions.yaml"


@pytest.fixture(scope="module")
def result(shared_dir):
    return audits.run(audits.load_config(EXAMPLE), base=EXAMPLE.parent)


def findings_of(result, model, metric, groups, aggregate=None, compared_to=""):
    return [
        finding
        for finding in result.findings
        if (finding.model, finding.metric, finding.groups, finding.subject)
        == (model, metric, groups, "")
        and aggregate in (None, finding.aggregate)
        and finding.compared_to == compared_to
    ]


# Counted from the data set's own files; its authors print the accuracies 68.48 and 88.29 %.
@pytest.mark.parametrize(
    ("model", "accuracy", "worst", "gap"),
    [("deepface", 0.6848, 0.1296, 0.5552), ("facellm", 0.8829, 0.6083, 0.2746)],
)
def test_figures(result, model, accuracy, worst, gap):
    groups = "race × gender"
    assert findings_of(result, model, "accuracy", "")[0].value == pytest.approx(accuracy, abs=5e-5)
    (lowest,) = findings_of(result, model, "accuracy", groups, "worst_group")
    (between,) = findings_of(result, model, "accuracy", groups, "difference", "overall")
    assert lowest.value == pytest.approx(worst, abs=5e-5)
    assert between.value == pytest.approx(gap, abs=5e-5)
    for finding in (lowest, between):
        assert finding.verdict is Verdict.DISPARITY
        assert finding.null is NullHypothesis.ROWS
        assert finding.q_value < 0.05
        assert finding.ci_low < finding.value < finding.ci_high
