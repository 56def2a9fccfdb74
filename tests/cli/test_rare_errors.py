"""A file with rare errors: every surface says the ratio, with one verdict."""

import json

import numpy as np
import polars as pl

FALSE_MATCHES = {"Asian": 50, "White": 5}
OPTIONS = ("--target", "same", "--pred", "pred", "--groups", "ethnicity", "--positive", "yes",
           "--id", "pair", "--out", "run")  # fmt: skip


def write_pairs(path):
    tables = []
    for group, wrong in FALSE_MATCHES.items():
        same = np.repeat(["no", "yes"], [5000, 1000])
        pred = np.r_[np.repeat(["yes", "no"], [wrong, 5000 - wrong]), same[5000:]]
        tables.append(pl.DataFrame({"same": same, "pred": pred, "ethnicity": group}))
    pl.concat(tables).with_row_index("pair").write_csv(path)


def test_a_ratio_of_rare_errors_is_said_alike_everywhere(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_pairs(tmp_path / "pairs.csv")
    code, terminal, _ = command("quick", "pairs.csv", *OPTIONS)
    assert code == 0
    first = terminal.strip().splitlines()[0]
    assert "10 times as often" in first
    assert "DISPARITY" in first
    # Rates below 1 % have two decimals, so that they don't look alike.
    assert "0.10" in terminal
    printed = json.loads(command("show", "run", "--json")[1])
    (conclusion, *_) = printed["conclusions"]
    (finding,) = [
        finding
        for finding in printed["findings"]
        if (finding["metric"], finding["aggregate"]) == ("false_positive_rate", "difference")
    ]
    assert conclusion["verdict"] == finding["verdict"] == "disparity"
    assert conclusion["ratio"] == finding["ratio"]
    assert conclusion["ratio"]["decides"]
    card = command("export", "run")[1]
    assert "**Disparity (ratio 10).**" in card
    assert conclusion["sentence"].split(" (")[0] in card
