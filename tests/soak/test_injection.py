"""Writers whose operations fail or end their process, and faults that must be noticed."""

import pytest

from tools.soak.faults import END, Fault
from tools.soak.injection import disturbed, faults
from tools.soak.seeded import SEEDS, self_check
from tools.soak.work import in_process


@pytest.mark.parametrize("case", ["Embeddings of texts", "new, a study", "JUnit file", "Labels"])
def test_a_disturbed_writer_ends_as_if_nobody_had(case, tmp_path):
    operations, chosen, tried, failures = in_process(disturbed, case, tmp_path, 0, 0.15)
    assert failures == []
    assert operations >= chosen > 0
    assert tried == 1 + 3 * chosen


def test_seeded_faults_are_noticed(tmp_path):
    names = ("missing flush of a folder", "leftover not removed", "key without a setting",
             "lock of labels removed")  # fmt: skip
    assert self_check(tmp_path, names).failures == ()
    assert len(SEEDS) == 11


def test_both_ends_and_a_sample_between_are_disturbed():
    places = {fault.at for fault in faults(500, seed=1)}
    assert {END, *range(1, 21), *range(481, 501)} <= places
    assert len(places) == 61
    assert {fault.at for fault in faults(5, seed=1)} == {*range(6)}
    assert str(Fault("fail", 3, 28)) == "ENOSPC at 3"
