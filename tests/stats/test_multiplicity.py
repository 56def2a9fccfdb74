import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from equipoise.core.errors import InputError
from equipoise.stats import benjamini_hochberg, holm

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=30)

# Benjamini & Hochberg 1995, section 3.1: at 0.05 the first four are discoveries, Bonferroni's
# and Holm's only the first three.
PUBLISHED = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240,
             0.4262, 0.5719, 0.6528, 0.7590, 1.0]  # fmt: skip


def test_the_published_example() -> None:
    assert (benjamini_hochberg(PUBLISHED) <= 0.05).sum() == 4
    assert (holm(PUBLISHED) <= 0.05).sum() == 3


@given(p_values)
def test_benjamini_hochberg_is_scipys(p: list[float]) -> None:
    np.testing.assert_allclose(benjamini_hochberg(p), false_discovery_control(p), atol=1e-15)


@given(p_values)
def test_holm_is_its_definition(p: list[float]) -> None:
    order = np.argsort(p, kind="stable")
    expected, highest = np.empty(len(p)), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, (len(p) - rank) * p[index])
        expected[index] = min(highest, 1.0)
    np.testing.assert_allclose(holm(p), expected, atol=1e-15)


@pytest.mark.parametrize("correct", [benjamini_hochberg, holm])
@given(p=p_values)
def test_q_is_no_smaller_than_p_and_keeps_its_order(correct, p: list[float]) -> None:  # noqa: ANN001
    q = correct(p)
    assert (q >= np.array(p) - 1e-15).all()
    assert (np.diff(q[np.argsort(p, kind="stable")]) >= 0).all()
    np.testing.assert_array_equal(correct(p[::-1]), q[::-1])


@pytest.mark.parametrize("correct", [benjamini_hochberg, holm])
def test_what_was_not_tested_is_not_counted(correct) -> None:  # noqa: ANN001
    q = correct([0.01, np.nan, 0.02, np.nan])
    assert np.isnan(q).tolist() == [False, True, False, True]
    np.testing.assert_array_equal(q[[0, 2]], correct([0.01, 0.02]))
    assert np.isnan(correct([np.nan])).all()
    assert correct([]).shape == (0,)


@pytest.mark.parametrize("correct", [benjamini_hochberg, holm])
def test_bad_input(correct) -> None:  # noqa: ANN001
    message = "p: expected p-values between 0 and 1, NaN where there was no test"
    with pytest.raises(InputError, match=f"^{message}$"):
        correct([0.1, 1.1])
    message = r"p: shape \(1, 1\); expected one p-value per test, shape \(tests,\)"
    with pytest.raises(InputError, match=f"^{message}$"):
        correct([[0.1]])
