"""Writers whose operations fail or end their process, and faults that must be noticed."""

import pytest

from tools.soak.faults import END, Fault
from tools.soak.injection import disturbed, faults
from tools.soak.seeded import SEEDS, self_check
from tools.soak.work import in_process


@pytest.mark.parametrize(
    ("case", "share"),
    [("A file", 1), ("Embeddings of texts", 0.1), ("new, a study", 0.1), ("Labels", 0.1)],
)
def test_a_disturbed_writer_ends_as_if_nobody_had(case, share, tmp_path):
    operations, chosen, tried, failures = in_process(disturbed, case, tmp_path, 0, share)
    assert failures == []
    assert operations >= chosen > 0
    assert tried == 1 + 3 * chosen


def test_seeded_faults_are_noticed(tmp_path):
    names = [name for name, seed in SEEDS.items() if seed.check.__name__ in ("_file", "_keys")]
    assert len(names) == 7
    assert self_check(tmp_path, names).failures == ()


@pytest.mark.parametrize(
    ("found", "caught"),
    [
        (lambda _, seeded: ["noticed"] * seeded, 11),
        (lambda name, seeded: ["noticed"] * (seeded and name != "lock removed"), 10),
        # A check that finds something in equipoise as it is shows nothing.
        (lambda *_: ["noticed"], 0),
    ],
)
def test_a_fault_is_caught_by_a_check_that_is_clean_without_it(found, caught, tmp_path):
    row = self_check(tmp_path, run=found)
    assert (row.tried, row.held) == (11, caught)
    assert bool(row.failures) == (caught < 11)


def test_both_ends_and_a_sample_between_are_disturbed():
    places = {fault.at for fault in faults(500, seed=1)}
    assert {END, *range(1, 9), *range(493, 501)} <= places
    assert len(places) == 25
    assert {fault.at for fault in faults(5, seed=1)} == {*range(6)}
    assert str(Fault("fail", 3, 28)) == "ENOSPC at 3"


def test_a_slow_writer_has_each_kind_of_fault_by_turns():
    slow = faults(500, seed=1, slow=True)
    assert len(slow) == 25
    assert {fault.kind for fault in slow} >= {"fail", "kill", "cut"}
