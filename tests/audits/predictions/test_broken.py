"""Warnings at the top of a report about models with uninformative labels."""

import numpy as np
import pyarrow as pa

from equipoise import audits

N = 600
RNG = np.random.default_rng(0)
GROUPS = np.array(["a", "b", "c"])[np.arange(N) % 3]
TRUTH = np.array(["chef", "nurse", "pilot"])[RNG.integers(0, 3, N)]
RANDOM = TRUTH[RNG.permutation(N)]


def audited(predicted, truth=TRUTH, **model):
    table = pa.table({
        "id": [*map(str, range(N))], "group": GROUPS, "truth": truth, "said": predicted,
        "second": np.where(predicted == "chef", "nurse", "chef"),
    })  # fmt: skip
    config = {
        "audit": "predictions",
        "data": {"table": table, "id": "id", "target": "truth", "groups": ["group"]},
        "models": {"m": {"table": table, "prediction": "said", **model}},
        "resampling": {"replicates": 20, "permutations": 99},
    }
    return audits.run(audits.parse_config(config))


def test_trivial_results_are_named_at_the_top():
    noisy = np.where(RNG.random(N) < 0.3, RANDOM, TRUTH)
    (hits,) = audited(noisy, top=["said", "second"], prediction=None).manifest.warnings
    assert "k = 2" in hits
    (constant,) = audited(noisy, ["nurse", "pilot", *["chef"] * (N - 2)]).manifest.warnings
    assert "“chef”" in constant


def test_a_good_model_is_not_warned_about_in_a_group_of_one_class():
    truth = np.where((GROUPS == "b") & (np.arange(N) % 20 != 1), "chef", TRUTH)
    predicted = np.where(np.arange(N) % 30 == 1, "chef", truth)
    assert (predicted == truth)[GROUPS == "b"].mean() > 0.95
    assert audited(predicted, truth).manifest.warnings == ()


def test_a_hit_rate_needs_a_k_between_one_and_the_number_of_classes():
    two = np.where(TRUTH == "pilot", "nurse", TRUTH)
    for k in (1, 2, 5):
        result = audited_hits(two, np.where(two == "chef", "nurse", "chef"), k)
        assert not [f for f in result.findings if f.metric == "hit_rate"]
        assert result.manifest.warnings == ()
    result = audited_hits(TRUTH, np.where(TRUTH == "chef", "nurse", "chef"), 5)
    (hits,) = result.manifest.warnings
    assert "k = 2" in hits
    assert "Lower" not in hits


def audited_hits(predicted, second, k):
    """Audit a good model's two best labels."""
    table = pa.table({
        "id": [*map(str, range(N))], "group": GROUPS, "truth": predicted, "said": predicted,
        "second": second,
    })  # fmt: skip
    config = {
        "audit": "predictions",
        "data": {"table": table, "id": "id", "target": "truth", "groups": ["group"]},
        "models": {"m": {"table": table, "top": ["said", "second"]}},
        "metrics": {"hit_rate": {"k": k}},
        "resampling": {"replicates": 20, "permutations": 99},
    }
    return audits.run(audits.parse_config(config))
