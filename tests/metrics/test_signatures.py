"""What completion, `inspect.signature` and `help()` show of the public metric functions."""

import inspect
import pydoc
import textwrap

import pytest

from equipoise import metrics as m
from equipoise.metrics.registry import remove

FUNCTIONS = {
    name: value
    for name in m.__all__
    if inspect.isfunction(value := getattr(m, name)) or isinstance(value, m.RankingMetric)
}
# Metrics that forms make are no functions, and are called as such.
FORMS = ("accuracy", "hit_rate", "true_positive_rate", "cramers_v", "representation")
CALLED = FUNCTIONS | {name: getattr(m, name) for name in FORMS}
# Functions that readers of the docs meet first.
MAIN = (
    "worst_group_accuracy", "accuracy_gap", "demographic_parity", "equalized_odds",
    "rates", "effect_sizes", "skewsize", "max_skew", "min_skew", "ndkl",
    "skew_at_k", "bias_at_k", "retrieval_mad", "iss_intra", "iss_cross", "label_concentration",
    "gender_difference", "sc_weat", "representation_gap",
)  # fmt: skip
SCREEN = 45
COUNTED = ("accuracy", "worst_group_accuracy", "accuracy_gap", "equalized_odds", "rates")
RANKED = ("max_skew", "min_skew", "skew_at_k", "ndkl", "bias_at_k", "retrieval_mad")
COMPARED = ("weat", "sc_weat", "mcas", "association_score")
SHARED = {
    **dict.fromkeys(COUNTED, ("weights", "units", "resampling", "rng")),
    **dict.fromkeys(RANKED, ("desired", "queries", "within", "sets", "units", "resampling", "rng")),
    **dict.fromkeys(COMPARED, ("similarity", "units", "resampling", "rng")),
}


def help_lines(function):
    """Lines of `help()` below its title, the signature cut at 80 columns."""
    _, _, signature, *text = pydoc.render_doc(function, renderer=pydoc.plaintext).splitlines()
    return [*textwrap.wrap(signature, 80), *text]


@pytest.mark.parametrize("name", CALLED)
def test_every_parameter_has_a_name(name):
    kinds = {parameter.kind for parameter in inspect.signature(CALLED[name]).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds


@pytest.mark.parametrize("name", SHARED)
def test_shared_parameters_are_keywords_of_their_own(name):
    parameters = inspect.signature(CALLED[name]).parameters
    assert {*SHARED[name]} <= {*parameters}
    assert {parameters[shared].kind for shared in SHARED[name]} == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("name", MAIN)
def test_help_fits_a_screen(name):
    assert len(help_lines(FUNCTIONS[name])) <= SCREEN


@pytest.mark.parametrize("name", FORMS)
def test_text_of_a_form_fits_a_screen(name):
    assert 5 < len((inspect.getdoc(CALLED[name]) or "").splitlines()) <= SCREEN


def test_a_metric_of_a_form_shows_the_text_and_options_of_its_function():
    @m.metric(
        m.MetricSpec(
            name="right_share", kinds=("predictions",), definition="A share.", direction="Higher.",
            reference="tests",
        ),
        form=m.CountMetric,
    )  # fmt: skip
    def right_share(counts, tables, *, power: int = 1):
        """Share of right predictions, to a power."""
        return (tables[:, counts.truth == counts.prediction].sum(axis=(1, 2))) ** power

    try:
        *_, power = (parameters := inspect.signature(right_share).parameters).values()
        assert [*parameters][:3] == ["y_true", "y_pred", "groups"]
        assert (power.name, power.default, power.kind) == (
            "power",
            1,
            inspect.Parameter.KEYWORD_ONLY,
        )
        text = pydoc.render_doc(right_share, renderer=pydoc.plaintext)
        assert "right_share(y_true, y_pred, groups, " in text
        assert "Share of right predictions, to a power." in text
        assert inspect.getdoc(right_share) != inspect.getdoc(m.CountMetric)
    finally:
        remove("right_share")


@pytest.mark.parametrize("name", [n for n in m.SPECS if hasattr(getattr(m, n, None), "spec")])
def test_the_text_of_a_metric_is_its_own(name):
    described = getattr(m, name)
    texts = [inspect.getdoc(shown) for shown in (described, type(described))]
    of_metric, of_form = (text.partition("\n")[0] for text in texts)
    assert described.__name__ == name
    assert of_metric != of_form


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_name_types_instead_of_spelling_them_out(name):
    assert "Union[" not in str(inspect.signature(FUNCTIONS[name]))


def test_a_resampling_shows_what_differs_from_its_defaults():
    from equipoise.stats import Bootstrap, Permutation

    assert repr(Bootstrap()) == "Bootstrap()"
    assert repr(Permutation(level=0.9)) == "Permutation(level=0.9)"
    assert eval(repr(Bootstrap(200, level=0.9))) == Bootstrap(200, level=0.9)
