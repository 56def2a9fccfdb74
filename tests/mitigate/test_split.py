"""No subject stands on both sides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core import InputError
from equipoise.mitigate import Split, Training, folds, split_subjects
from mitigate.scenes import TEXTS

names = st.sets(st.text("abcdef", min_size=1, max_size=4), min_size=2, max_size=30)


@given(names, st.floats(0.05, 0.95), st.integers(0, 5))
def test_a_split_holds_each_subject_once(subjects, share, seed):
    split = split_subjects(subjects, withheld=share, seed=seed)
    assert {*split.training} | {*split.withheld} == subjects
    assert not {*split.training} & {*split.withheld}
    assert abs(len(split.withheld) - share * len(subjects)) <= 1
    assert split == split_subjects(sorted(subjects), withheld=share, seed=seed)


@given(names, st.integers(0, 5))
def test_folds_withhold_each_subject_once(subjects, seed):
    parts = folds(subjects, count=2, seed=seed)
    assert sorted(name for part in parts for name in part.withheld) == sorted(subjects)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Split(("a", "b"), ("b", "c")),
        lambda: Split(("a",), ()),
        lambda: Split((), ("a",)),
        lambda: split_subjects(["a"]),
        lambda: folds(["a", "b"], count=5),
        lambda: Training((TEXTS["solid circle"],), (TEXTS["solid circle"],)),
    ],
)
def test_a_split_without_two_separate_sides_is_an_error(make):
    with pytest.raises(InputError):
        make()
