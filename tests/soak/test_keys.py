"""A changed byte or setting is never met with old evidence; a moved folder is."""

import pytest

from tools.soak.keys import SUBJECTS, Case, Subject, key_tests


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_evidence_follows_its_inputs(subject, tmp_path):
    (row,) = key_tests(tmp_path, (subject,))
    assert row.failures == ()
    assert row.tried == len(subject.cases)


def test_a_key_that_sees_nothing_or_everything_fails(tmp_path):
    def run(_files, store, *, computed=0):
        first = not store.exists()
        store.mkdir(exist_ok=True)
        return 1 if first else computed

    cases = (Case("unseen"), Case("anew", settings={"computed": 1}, decides=False))
    (row,) = key_tests(tmp_path, (Subject("odd", lambda _: None, run, cases),))
    assert (row.tried, row.held) == (2, 0)
