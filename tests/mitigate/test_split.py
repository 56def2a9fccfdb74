"""No subject stands on both sides."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core.errors import InputError
from equipoise.mitigate import Split, Training, folds, split_subjects
from mitigate.scenes import TEXTS

names = st.sets(st.text("abcdef", min_size=1, max_size=4), min_size=2, max_size=30)


@given(names, st.floats(0.05, 0.95), st.integers(0, 5))
def test_a_split_holds_each_subject_once(subjects: set[str], share: float, seed: int) -> None:
    split = split_subjects(subjects, withheld=share, seed=seed)
    assert {*split.training} | {*split.withheld} == subjects
    assert not {*split.training} & {*split.withheld}
    assert abs(len(split.withheld) - share * len(subjects)) <= 1
    assert split == split_subjects(sorted(subjects), withheld=share, seed=seed)


@given(names, st.integers(0, 5))
def test_folds_withhold_each_subject_once(subjects: set[str], seed: int) -> None:
    parts = folds(subjects, count=2, seed=seed)
    assert sorted(name for one in parts for name in one.withheld) == sorted(subjects)


def test_a_subject_on_both_sides_is_an_error() -> None:
    message = (
        "1 of the subjects are on both sides of the split: b. What is learned from a subject "
        "cannot be tested on it. To do: give each subject to one side"
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        Split(("a", "b"), ("b", "c"))
    with pytest.raises(InputError, match="solid circle. What is learned"):
        Training((TEXTS["solid circle"],), (TEXTS["solid circle"],))


def test_too_few_subjects() -> None:
    with pytest.raises(InputError, match=r"^1 subjects, of which a share of 0\.2 is to be"):
        split_subjects(["a"])
    with pytest.raises(InputError, match="^5 folds of 2 subjects; expected at least 2, and a"):
        folds(["a", "b"], count=5)
