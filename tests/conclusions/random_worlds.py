"""Random configs of every kind of audit: sizes, groups, classes and effects differ by seed."""

import numpy as np

from conclusions import worlds
from conclusions.worlds import Rows


def _names(rng, prefix, least=2, most=4):
    return [f"{prefix}{k}" for k in range(rng.integers(least, most + 1))]


def predictions(rng, seed):
    n, classes = int(rng.integers(150, 1500)), _names(rng, "class ")
    attributes = {
        name: rng.choice(
            levels := _names(rng, name[0]), n, p=rng.dirichlet(np.full(len(levels), 4))
        )
        for name in ("gender", "age")
    }
    truth = rng.choice(classes, n, p=rng.dirichlet(np.full(len(classes), 4)))
    rows = Rows(seed + 1000, attributes, classes, truth)
    planted = [
        ({"gender": level} | ({"truth": rng.choice(classes)} if rng.random() < 0.5 else {}),
         rng.uniform(0.3, 1.0))
        for level in set(attributes["gender"]) if rng.random() < 0.4
    ]  # fmt: skip
    predicted = rows.predicted(rng.uniform(0.5, 0.99), planted).astype(object)
    config = rows.config(predicted, worlds.BOTH if seed % 2 else ["gender", "age"])
    if rng.random() < 0.5:
        predicted[(rng.random(n) < rng.uniform(0, 0.3)) & (rows.attributes["age"] == "a0")] = ""
        config = rows.config(predicted, ["gender", "age"])
    return config


def answers(rng, seed):
    n, texts = int(rng.integers(200, 900)), [*_names(rng, "answer "), "I don't know"]
    gender = rng.choice(_names(rng, "g"), n)
    said = rng.choice(texts, n, p=rng.dirichlet(np.full(len(texts), 2)))
    said = np.where((gender == "g0") & (rng.random(n) < rng.uniform(0, 0.5)), texts[0], said)
    return worlds.answers(said, gender=gender)


def dataset(rng, seed):
    return worlds.dataset(int(rng.integers(50, 950)))


def _leans(rng):
    return {name: rng.choice([0.0, rng.normal()]) for name in _names(rng, "job ", 2, 6)}


def similarity(rng, seed):
    config = worlds.prompted("similarity", _leans(rng), int(rng.integers(12, 25)), seed)
    if seed % 2:
        config["models"]["m"]["scale"] = 10.0
    return config


def retrieval(rng, seed):
    return worlds.prompted("retrieval", _leans(rng), int(rng.integers(12, 25)), seed,
                           ranking={"k": 6, "curves": False})  # fmt: skip


def counterfactuals(rng, seed):
    return worlds.ranked_sets(_leans(rng), seed)


def text_to_image(rng, seed):
    sizes = [50, 60, 70]
    jobs, share = np.repeat(["builder", "chef", "nurse"], sizes), np.repeat(rng.random(3), sizes)
    return worlds.generated(jobs, np.where(rng.random(len(jobs)) < share, "woman", "man"))


def associations(rng, seed):
    return worlds.associations(seed, rng.normal())


def diversity(rng, seed):
    return worlds.diversity(seed, rng.uniform(0.3, 1.2))


def generation(rng, seed):
    return worlds.generation(seed, rng.uniform(0.0, 0.4))


def concepts(rng, seed):
    return worlds.concepts(seed, rng.uniform(-1.6, 1.6))


def activations(rng, seed):
    return worlds.activations(seed, rng.uniform(0.3, 5.0))


def regression(rng, seed):
    return worlds.regression(seed, rng.uniform(1.0, 8.0))


def questions(rng, seed):
    return worlds.questions(seed, rng.uniform(0.0, 0.4), rng.uniform(0.0, 0.9), 100)


SEEDS = {
    predictions: 12, answers: 6, dataset: 4, similarity: 3, retrieval: 2, counterfactuals: 2,
    text_to_image: 4, associations: 3, diversity: 3, generation: 2, concepts: 2, activations: 2,
    regression: 2, questions: 3,
}  # fmt: skip
"""How many configs of each kind are tried."""


def configs():
    """Yield a name, a builder of a config and its arguments for every kind and seed."""
    for build, n in SEEDS.items():
        for seed in range(n):
            yield f"{build.__name__} {seed}", build, seed
