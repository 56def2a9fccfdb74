"""A small world of images and words for tests of audits of associations."""

import numpy as np
import polars as pl

from equipoise import audits

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
ASSOCIATION = {
    "men": 1.0, "women": -1.0, "science": 0.6, "arts": -0.6, "doctor": 0.8, "nurse": -0.8
}  # fmt: skip
# Sixty-four images of people, then twelve of each of two occupations.
IMAGES = pl.DataFrame(
    [
        {"image": f"p{k:02d}", "gender": ("Female", "Male")[k % 2],
         "region": ("north", "south", "east")[k % 3], "person": f"person{k // 4}", "job": None}
        for k in range(64)
    ]
    + [
        {"image": f"{job}{k:02d}", "gender": None, "region": None, "person": None, "job": job}
        for job in ("doctor", "nurse")
        for k in range(12)
    ],
    schema_overrides={"job": pl.String},
)  # fmt: skip
TEXTS = pl.DataFrame(
    [{"word": word, "list": name} for name, listed in WORDS.items() for word in listed]
)
DATA = {
    "images": {"table": IMAGES, "id": "image", "kind": "image"},
    "words": {"table": TEXTS, "id": "word", "kind": "text"},
}
SETS = {
    "men": {"images": {"gender": "Male"}, "words": {"list": "men"}},
    "women": {"images": {"gender": "Female"}, "words": {"list": "women"}},
    "science": {"words": {"list": "science"}},
    "arts": {"words": WORDS["arts"]},
    "good": {"words": {"list": "good"}},
    "bad": {"words": {"list": "bad"}},
    "prompts": {"words": {"list": "prompt"}},
    "doctor": {"images": {"job": "doctor"}, "words": ["a photo of a doctor"]},
    "nurse": {"images": {"job": "nurse"}, "words": ["a photo of a nurse"]},
}


def image_vectors(strength=1.0, seed=0):
    names = [gender or job for gender, job in IMAGES.select("gender", "job").iter_rows()]
    planted = {"Male": 1.0, "Female": -1.0, "doctor": 0.8 * strength, "nurse": -0.8 * strength}
    vectors = 0.5 * np.random.default_rng(seed).standard_normal((len(names), DIMENSION))
    vectors[:, 0] += 2.0
    vectors[:, 1] += [planted[name] for name in names]
    return vectors


def word_vectors(strength=1.0, seed=1):
    vectors = 0.3 * np.random.default_rng(seed).standard_normal((len(TEXTS), DIMENSION))
    vectors[:, 2] += 2.0
    vectors[:, 1] += [
        ASSOCIATION.get(name, ASSOCIATION.get(word.rpartition(" ")[2], 0.0))
        * (1.0 if name in ("men", "women") else strength)
        for word, name in TEXTS.iter_rows()
    ]
    return vectors


def rows_of(column, value):
    table = TEXTS if column == "list" else IMAGES
    return np.flatnonzero((table[column] == value).fill_null(False).to_numpy())


def model_of(images, words=None):
    texts = word_vectors() if words is None else words
    return {"embeddings": {"images": {"file": images}, "words": {"file": texts}}}


def model(strength=1.0, seed=0):
    return model_of(image_vectors(strength, seed), word_vectors(strength, seed + 1))


def values(*measure, **changes):
    """A configuration of the world; sets are added to those it has."""
    return {
        "audit": "associations",
        "data": DATA,
        "models": {"m": model()},
        "measure": [*measure],
        "resampling": {"replicates": 60, "permutations": 200, "seed": 3},
        **changes,
        "sets": SETS | changes.get("sets", {}),
    }


def run(*measure, **changes):
    return audits.run(audits.parse_config(values(*measure, **changes)))


def pick(result, metric, **where):
    """The only finding of a metric with these attributes."""
    (finding,) = (
        candidate
        for candidate in result.findings
        if candidate.metric == metric
        and all(getattr(candidate, key) == is_ for key, is_ in where.items())
    )
    return finding


def measure(metric, *targets, **options):
    return {"metric": metric, "targets": [*targets], "attributes": ["men", "women"], **options}
