"""How much is counted again for causes: by sizes, the same in every run, and told."""

import pytest

from conclusions import worlds
from equipoise import audits
from equipoise.audits import explaining


def run(world):
    return audits.run(audits.parse_config(world()))


def notes_on_cells(result):
    return [note for note in result.manifest.notes if "weren't examined" in note]


def test_every_likely_cell_of_a_small_run_is_examined():
    assert not notes_on_cells(run(worlds.two_causes))


@pytest.mark.parametrize("most", [1, 1000])
def test_cells_that_are_left_out_are_told_with_the_model(monkeypatch, most):
    monkeypatch.setattr(explaining, "MOST_NUMBERS", most)
    bounded = run(worlds.two_causes)
    notes = notes_on_cells(bounded)
    assert len(notes) == (1 if most == 1 else 0)
    assert all(note.startswith("m: ") for note in notes)
    assert repr(run(worlds.two_causes).conclusions) == repr(bounded.conclusions)
    assert bounded.conclusions[0].real


def test_a_bound_leaves_differences_unmerged_and_none_unsaid(monkeypatch):
    whole = run(worlds.two_causes)
    monkeypatch.setattr(explaining, "MOST_NUMBERS", 1)
    bounded = run(worlds.two_causes)
    assert bounded.findings == whole.findings or repr(bounded.findings) == repr(whole.findings)
    assert sum(c.real for c in bounded.conclusions) >= sum(c.real for c in whole.conclusions)


def test_causes_of_many_rows_are_examined_on_a_random_part(monkeypatch):
    def world():
        rows = worlds.Rows(2, worlds.crossed(3000, **worlds.PEOPLE))
        planted = [
            ({"gender": "woman", "truth": "chef"}, 0.6),
            ({"age": "old", "truth": "pilot"}, 0.55),
        ]
        return rows.config(rows.predicted(0.92, planted), worlds.BOTH)

    whole = run(world)
    monkeypatch.setattr(explaining, "FEWEST_ROWS", 12_000)
    monkeypatch.setattr(explaining, "MOST_ROWS", 1)
    part = run(world)
    notes = [note for note in part.manifest.notes if note.startswith("causes: ")]
    assert len(notes) == 1
    assert [*map(repr, part.findings)] == [*map(repr, whole.findings)]
    stated, stated_by_part = (
        [(c.groups, c.group, c.subject, c.n) for c in result.conclusions if c.real]
        for result in (whole, part)
    )
    assert stated == stated_by_part
    assert len(stated) == 2
    assert not [note for note in whole.manifest.notes if note.startswith("causes: ")]
    assert repr(run(world).conclusions) == repr(part.conclusions)
