"""A small world of images and words for tests of audits of associations."""

from typing import Any

import numpy as np
import polars as pl

from equipoise import audits
from equipoise.core import AuditResult, Finding

DIMENSION = 8
WORDS = {
    "men": ["man", "male", "he", "him"],
    "women": ["woman", "female", "she", "her"],
    "science": ["physics", "chemistry", "geometry"],
    "arts": ["poetry", "dance", "sculpture"],
    "good": ["honest", "gentle"],
    "bad": ["cruel", "lazy"],
    "prompt": ["a photo of a doctor", "a photo of a nurse"],
}
LEAN = {"men": 1.0, "women": -1.0, "science": 0.6, "arts": -0.6, "doctor": 0.8, "nurse": -0.8}


def images() -> pl.DataFrame:
    """Forty images of people, then twelve of each of two occupations."""
    people = [
        {
            "image": f"p{k:02d}", "gender": "Male" if k % 2 else "Female",
            "region": ("north", "south", "east")[k % 3], "person": f"person{k // 4}", "job": None,
        }
        for k in range(40)
    ]  # fmt: skip
    jobs = [
        {
            "image": f"{job}{k:02d}", "gender": None, "region": None, "person": None, "job": job,
        }
        for job in ("doctor", "nurse")
        for k in range(12)
    ]  # fmt: skip
    return pl.DataFrame(people + jobs, schema_overrides={"job": pl.String})


def words() -> pl.DataFrame:
    return pl.DataFrame(
        [{"word": word, "list": name} for name, listed in WORDS.items() for word in listed]
    )


def image_vectors(strength: float = 1.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    table = images()
    lean = [
        1.0 if gender == "Male" else -1.0 if gender == "Female" else strength * LEAN[job]
        for gender, job in zip(table["gender"], table["job"], strict=True)
    ]
    found = 0.5 * rng.standard_normal((len(lean), DIMENSION))
    found[:, 0] += 2.0
    found[:, 1] += lean
    return found


def word_vectors(strength: float = 1.0, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    lean = []
    for word, name in words().iter_rows():
        job = word.rpartition(" ")[2]
        own = LEAN.get(name, LEAN.get(job, 0.0))
        lean.append(own if name in ("men", "women") else strength * own)
    found = 0.3 * rng.standard_normal((len(lean), DIMENSION))
    found[:, 2] += 2.0
    found[:, 1] += lean
    return found


def rows_of(column: str, value: str) -> np.ndarray:
    table = words() if column == "list" else images()
    return np.flatnonzero((table[column] == value).fill_null(False).to_numpy())


def model(strength: float = 1.0, seed: int = 0) -> dict[str, Any]:
    return {
        "embeddings": {
            "images": {"file": image_vectors(strength, seed)},
            "words": {"file": word_vectors(strength, seed + 1)},
        }
    }


SETS: dict[str, Any] = {
    "men": {"images": {"gender": "Male"}, "words": {"list": "men"}},
    "women": {"images": {"gender": "Female"}, "words": {"list": "women"}},
    "science": {"words": {"list": "science"}},
    "arts": {"words": ["poetry", "dance", "sculpture"]},
    "good": {"words": {"list": "good"}},
    "bad": {"words": {"list": "bad"}},
    "prompts": {"words": {"list": "prompt"}},
    "doctor": {"images": {"job": "doctor"}, "words": ["a photo of a doctor"]},
    "nurse": {"images": {"job": "nurse"}, "words": ["a photo of a nurse"]},
}


def values(*measure: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A configuration of the world; sets are added to those it has."""
    found: dict[str, Any] = {
        "audit": "associations",
        "data": {
            "images": {"table": images(), "id": "image", "kind": "image"},
            "words": {"table": words(), "id": "word", "kind": "text"},
        },
        "models": {"m": model()},
        "sets": {**SETS, **changes.pop("sets", {})},
        "measure": [*measure],
        "resampling": {"replicates": 60, "permutations": 200, "seed": 3},
    }
    return {**found, **changes}


def run(*measure: dict[str, Any], **changes: Any) -> AuditResult:
    return audits.run(audits.parse_config(values(*measure, **changes)))


def pick(result: AuditResult, metric: str, **where: str) -> Finding:
    """The only finding of a metric with these attributes."""
    (found,) = (
        one
        for one in result.findings
        if one.metric == metric and all(getattr(one, key) == is_ for key, is_ in where.items())
    )
    return found


def asked(metric: str, *targets: str, **options: Any) -> dict[str, Any]:
    return {"metric": metric, "targets": [*targets], "attributes": ["men", "women"], **options}
