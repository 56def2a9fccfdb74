"""No judgement that was accepted is lost: several processes, kills, a full disk."""

import polars as pl

from tests.cause_worlds import World
from tools.soak import history


def test_accepted_judgements_are_there(tmp_path):
    rows = history.label_history(tmp_path, kills=4, rounds=1, seed=3)
    assert [row.failures for row in rows] == [(), (), (), ()]
    assert sum(row.held for row in rows) >= 6


def test_a_lost_judgement_is_seen(tmp_path):
    # The comparison has the power to fail.
    run = World("paintings", 300, seed=3).audited(tmp_path)
    accepted = {("0000.png", "ann"), ("0000.png", "bo")}
    path = run / "labels" / "labels.parquet"
    one = pl.read_parquet(path).head(1).with_columns(image_id=pl.lit("0000.png"))
    one.write_parquet(path)
    assert history.problems(run, accepted) == ["1 of 2 judgements are lost"]
    (run / "tables" / "mine.txt").write_text("mine")
    assert history.hindrances(run, tmp_path / "next") != []
