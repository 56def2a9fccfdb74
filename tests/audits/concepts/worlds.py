"""Audits of concepts on data frames made up on the spot."""

import polars as pl

from concept_worlds import world
from equipoise import audits

CONCEPTS = ("chef", "nurse", "guitar", "bicycle")


def tables(scores, labels, group, **columns):
    """Images, labels and scores of a world as three tables, the latter two turned around."""
    ids = [f"i{place}" for place in range(len(group))]
    names = CONCEPTS if scores.shape[1] == len(CONCEPTS) else map(str, range(scores.shape[1]))
    names = [*names]
    flags = {name: labels[:, place].astype(int) for place, name in enumerate(names)}
    scored = {name: scores[:, place] for place, name in enumerate(names)}
    return {
        "images": pl.DataFrame({"image": ids, "gender": group} | columns),
        "labels": pl.DataFrame({"image": ids} | flags).reverse(),
        "scores": pl.DataFrame({"image": ids} | scored).reverse(),
    }


def values(data, **changes):
    """A configuration for the tables of `tables`, quick, with changes."""
    base = {
        "audit": "concepts",
        "data": {
            "images": {"table": data["images"], "id": "image"},
            "groups": ["gender"],
            "labels": {"file": data["labels"]},
        },
        "models": {"m": {"file": data["scores"]}},
        "metrics": ["average_precision"],
        "choices": {"min_positives": 20},
        "resampling": {"replicates": 50, "permutations": 200},
    }
    return base | changes


def small(**changes):
    """A configuration on a world of 400 images."""
    return values(tables(*world(3, n=400)), **changes)


def with_data(data, **keys):
    """A configuration whose section `data` has more keys."""
    settings = values(data)
    return settings | {"data": settings["data"] | keys}


def run(settings):
    return audits.run(audits.parse_config(settings, source="c"))


def frame(result, name):
    table = pl.from_arrow(result.tables[name])
    assert isinstance(table, pl.DataFrame)
    return table
