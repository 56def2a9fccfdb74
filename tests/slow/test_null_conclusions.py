"""How often audits of fair models conclude a disparity, for every kind that is quick enough."""

import math

import numpy as np
import pytest

from conclusions import planted_causes, worlds
from conclusions.worlds import Rows

BLOCKS, WORLDS, ALPHA = 5, 40, 0.05
HIGHEST = ALPHA * WORLDS + 3 * math.sqrt(WORLDS * ALPHA * (1 - ALPHA))
"""Three standard errors above the level that is accepted."""


def predictions(rng):
    n = int(rng.choice([600, 2400]))
    attributes = {name: rng.choice(list("abc"), n) for name in ("gender", "age")}
    rows = Rows(int(rng.integers(2**31)), attributes)
    return rows.config(rows.predicted(rng.uniform(0.7, 0.95)), worlds.BOTH)


def answers(rng):
    said = rng.choice(["chef", "nurse", "pilot", "I don't know"], 600)
    return worlds.answers(said, gender=rng.choice(["man", "woman"], 600))


def dataset(rng):
    return worlds.dataset(int(rng.binomial(1000, 0.5)))


def text_to_image(rng):
    jobs = np.repeat(["builder", "chef", "nurse"], [60, 80, 100])
    return worlds.generated(jobs, rng.choice(["man", "woman"], len(jobs)))


def associations(rng):
    # Where men and women differ, the noise of a few target words is an association of these words.
    return worlds.associations(int(rng.integers(2**31)), builder=0.0, gender=0.0)


def diversity(rng):
    return worlds.diversity(int(rng.integers(2**31)), spread=0.9)


def generation(rng):
    return worlds.generation(int(rng.integers(2**31)), women=0.03)


def concepts(rng):
    return worlds.concepts(int(rng.integers(2**31)), shift=0.0)


def activations(rng):
    return worlds.activations(int(rng.integers(2**31)), women=4.0)


def regression(rng):
    return worlds.regression(int(rng.integers(2**31)), women=4.0)


def questions(rng):
    return worlds.questions(int(rng.integers(2**31)), gap=0.0, scenes=100)


def prompts(rng):
    return {f"job {place}": 0.0 for place in range(rng.integers(2, 17))}


def ranked(kind, rng, **sections):
    """Prompts without a lean, which rank the images of their job or those of all jobs."""
    config = worlds.prompted(
        kind, prompts(rng), int(rng.integers(12, 25)), int(rng.integers(2**31)), **sections
    )
    if rng.integers(2):
        del config["data"]["subject"]
    return config


def retrieval(rng):
    return ranked("retrieval", rng, ranking={"k": int(rng.choice([6, 12])), "curves": False})


def similarity(rng):
    config = ranked("similarity", rng)
    config["models"]["m"]["scale"] = 10.0
    return config


def counterfactuals(rng):
    return worlds.ranked_sets(prompts(rng), int(rng.integers(2**31)))


KINDS = (
    predictions, answers, dataset, text_to_image, associations, diversity, generation, concepts,
    activations, regression, retrieval, similarity, counterfactuals, questions,
)  # fmt: skip


@pytest.mark.slow(whole=True)
@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_fair_models_are_rarely_said_to_have_a_disparity(kind, block):
    alarms = 0
    for place in range(WORLDS):
        config = kind(np.random.default_rng([block, place, KINDS.index(kind)]))
        alarms += bool(planted_causes.disparities(config))
    assert alarms <= HIGHEST
