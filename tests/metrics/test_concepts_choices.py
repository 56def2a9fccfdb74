"""Design choices: each effect planted and found, robust conclusions, order of models."""

from typing import Any

import numpy as np
import pytest

from concept_worlds import world
from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.metrics.concepts.choices import design_choices, model_order, robust_conclusions
from equipoise.metrics.concepts.disparity import concept_results
from equipoise.metrics.concepts.inputs import Choices
from equipoise.metrics.concepts.results import ConceptResults
from equipoise.stats.resampling import Bootstrap, Permutation

QUICK = Bootstrap(permutations=199, resolution=1.0)
NAMES = ["explained", "planted", "equal"]


def measured(prevalence: Any, *, noise: float = 0.0, seed: int = 1) -> ConceptResults:
    """Prevalence differs in the first concept only; the second has a real disparity."""
    scores, labels, group = world(seed, n=3000, concepts=3, prevalence=(0.25, 0.25), shift={1: 0.9})
    rare = np.random.default_rng(5).random(3000) < 0.65
    keep = ~((group == "b") & labels[:, 0] & rare)
    more = np.random.default_rng(6).standard_normal(scores.shape) * noise
    return concept_results(
        (scores + more)[keep],
        labels[keep],
        group[keep],
        Choices(prevalence=prevalence),
        concepts=NAMES,
        resampling=QUICK,
    )


def by(table: Any, **wanted: str) -> dict[str, Any]:
    (found,) = [
        row for row in table.to_pylist() if all(row[key] == one for key, one in wanted.items())
    ]
    return found  # type: ignore[no-any-return]


VERSIONS = {name: measured(name) for name in ("observed", "weighted", "hall")}


def test_prevalence_is_explained_and_a_real_disparity_stays() -> None:
    table = design_choices(VERSIONS, "observed")
    assert table.num_rows == 8
    for version in ("weighted", "hall"):
        effects = {name: by(table, version=version, concept=name)["effect"] for name in NAMES}
        assert effects == {"explained": "explains", "planted": "stays", "equal": "absent"}
        row = by(table, version=version, concept="explained")
        assert row["change_high"] < 0 < row["baseline_value"]
    assert by(table, version="hall", concept="")["rule"] == "[Hall]: 95% interval against 0"
    assert by(table, version="weighted", concept="")["rule"] == (
        "q <= 0.05 (Benjamini-Hochberg over concepts and pairs)"
    )
    # Read the other way round it surfaces.
    back = design_choices(VERSIONS, "weighted")
    assert by(back, version="observed", concept="explained")["effect"] == "surfaces"


def shifted(
    seed: int, shift: float, group_names: tuple[str, str] = ("a", "b"), n: int = 2000
) -> Any:
    scores, labels, group = world(seed, n=n, concepts=1, prevalence=(0.3, 0.3), shift={0: shift})
    names = np.where(group == "a", *group_names)
    return concept_results(scores, labels, names, resampling=QUICK, concepts=["c"])


@pytest.mark.parametrize(
    ("shift", "effect"),
    [(-0.9, "switches"), (1.6, "magnifies"), (0.4, "shrinks"), (0.9, "stays"), (0.0, "explains")],
)
def test_effects(shift: float, effect: str) -> None:
    versions = {"base": shifted(3, 0.9), "other": shifted(3, shift)}
    assert by(design_choices(versions, "base"), concept="c")["effect"] == effect


def test_a_mere_loss_of_significance_is_lost_power() -> None:
    scores, labels, group = world(3, concepts=1, n=2000, prevalence=(0.3, 0.3), shift={0: 0.35})
    choices = Choices(min_positives=5)
    few = np.arange(2000) < 160
    base = concept_results(scores, labels, group, choices, concepts=["c"], resampling=QUICK)
    small = concept_results(
        scores[few], labels[few], group[few], choices, concepts=["c"], resampling=QUICK
    )
    table = design_choices({"all": base, "few": small}, "all")
    assert by(table, concept="c")["effect"] == "lost power"


def test_groups_are_matched_in_either_order_and_missing_ones_said() -> None:
    versions = {"base": shifted(3, 0.9), "renamed": shifted(3, 0.9, ("b", "a"))}
    row = by(design_choices(versions, "base"), concept="c")
    # What was group a is now b: the difference of a and b has the other sign.
    assert row["effect"] == "switches"
    assert row["value"] == pytest.approx(-row["baseline_value"], abs=1e-12)
    others = {"base": shifted(3, 0.9), "other": shifted(3, 0.9, ("x", "y"))}
    assert by(design_choices(others, "base"), concept="c")["effect"] == "not estimable"


def test_robust_conclusions() -> None:
    table = robust_conclusions(VERSIONS, "observed")
    explained, planted = (by(table, concept=name) for name in NAMES[:2])
    assert (explained["conclusion"], explained["agreeing"], explained["robust"]) == ("a", 1, False)
    assert (planted["conclusion"], planted["share"], planted["robust"]) == ("a", 1.0, True)
    assert by(table, concept="equal")["conclusion"] == ""


def planted(
    min_positives: int = 5, *, rows: Any = slice(None), concept: bool = False
) -> ConceptResults:
    """The first two of three concepts have a real disparity; group b shows the second 28 times."""
    scores, labels, group = world(8, n=2000, concepts=3, prevalence=(0.3, 0.3), shift={0: 1, 1: 1})
    shown = np.flatnonzero((group == "b") & labels[:, 1])
    labels[shown[28:], 1] = False
    scores[shown[28:], 1] -= 1.2
    choices = Choices(
        prevalence="observed",
        min_positives=min_positives,
        incomplete="concept" if concept else "group",
    )
    return concept_results(
        scores[rows], labels[rows], Groups.of(group[rows], min_size=30), choices,
        concepts=["c", "rare", "same"], resampling=QUICK,
    )  # fmt: skip


def test_a_version_that_cannot_be_estimated_agrees_with_nothing() -> None:
    versions = {"base": planted(), "same": planted(), "strict": planted(30)}
    found = {row["concept"]: row for row in robust_conclusions(versions, "base").to_pylist()}
    counts = ("versions", "not_estimable", "agreeing", "share", "robust")
    assert [found["c"][name] for name in counts] == [3, 0, 3, 1.0, True]
    assert found["rare"]["conclusion"] == "a"
    assert [found["rare"][name] for name in counts] == [2, 1, 2, 1.0, False]
    # The baseline alone is no agreement either.
    alone = robust_conclusions({"base": planted(), "strict": planted(30)}, "base")
    row = by(alone, concept="rare")
    assert [row[name] for name in counts] == [1, 1, 1, 1.0, False]


def test_what_cannot_be_estimated_says_why() -> None:
    versions = {"base": planted(), "strict": planted(30), "whole": planted(30, concept=True)}
    table = design_choices(versions, "base")
    for name in ("strict", "whole"):
        row = by(table, version=name, concept="rare")
        assert (row["effect"], row["significant"]) == ("not estimable", False)
        assert (row["baseline_reason"], row["reason"]) == ("", "b: 28 positives, fewer than 30")
        mean = by(table, version=name, concept="")
        assert mean["reason"] == "over 2 concepts, not 3: without rare"
    for row in table.to_pylist():
        if row["concept"]:
            assert (row["effect"] == "not estimable") == bool(row["reason"])


def test_a_baseline_that_cannot_be_estimated_concludes_nothing() -> None:
    versions = {"strict": planted(30), "loose": planted()}
    row = by(design_choices(versions, "strict"), concept="rare")
    # Significant where it can be estimated, but no effect of the choice: there is no old number.
    assert (row["effect"], row["significant"]) == ("not estimable", True)
    assert (row["baseline_reason"], row["reason"]) == ("b: 28 positives, fewer than 30", "")
    assert by(design_choices(versions, "strict"), concept="")["reason"] == (
        "over 3 concepts, not 2: with rare"
    )
    concluded = robust_conclusions(versions, "strict")["concept"].to_pylist()
    assert concluded == ["", "c", "same"]


def test_a_version_without_a_group_says_so_of_every_concept() -> None:
    group = world(8, n=2000, concepts=3, prevalence=(0.3, 0.3), shift={0: 1, 1: 1})[2]
    few = np.flatnonzero((group == "a") | (np.cumsum(group == "b") <= 20))
    versions = {
        "base": planted(),
        "few": planted(rows=few),
        "none": planted(rows=np.flatnonzero(group == "a")),
        "others": shifted(3, 0.9),
    }
    table = design_choices(versions, "base")
    told = {
        (row["version"], row["concept"]): row["reason"]
        for row in table.to_pylist()
        if row["effect"] == "not estimable"
    }
    every = ("", "c", "rare", "same")
    assert {told["few", one] for one in every} == {"b: 20 rows, fewer than 30"}
    assert {told["none", one] for one in every} == {"b: no rows"}
    assert told["others", "rare"] == "the concept is not measured"
    found = by(robust_conclusions(versions, "base"), concept="rare")
    assert (found["versions"], found["not_estimable"], found["robust"]) == (1, 3, False)


def test_two_models_have_no_order_where_one_cannot_be_estimated() -> None:
    models = {
        "first": {"base": planted(), "strict": planted(30)},
        "second": {"base": planted(), "strict": planted()},
    }
    row = by(model_order(models, "base"), version="strict", concept="rare")
    assert np.isnan(row["difference"])
    assert (row["larger"], row["switches"]) == ("", False)


def test_order_of_models_and_where_it_switches() -> None:
    strong, weak = shifted(3, 1.4), shifted(3, 0.3)
    models = {
        "first": {"base": strong, "other": weak},
        "second": {"base": weak, "other": strong},
    }
    table = model_order(models, "base")
    base, other = (by(table, version=name, concept="c") for name in ("base", "other"))
    assert (base["larger"], base["switches"]) == ("first", False)
    assert (other["larger"], other["baseline_larger"], other["switches"]) == (
        "second",
        "first",
        True,
    )
    assert base["low"] <= base["difference"] <= base["high"]
    assert other["difference"] == -base["difference"]


def test_bad_input() -> None:
    with pytest.raises(
        InputError, match=r"^baseline='x': expected one of the versions \['base'\]$"
    ):
        design_choices({"base": shifted(3, 0.9)}, "x")
    bare = concept_results(*world(0), resampling=Permutation(9))
    message = (
        r"^versions: replicates \{'base': 0\}; expected equally many bootstrap replicates in all$"
    )
    with pytest.raises(InputError, match=message):
        design_choices({"base": bare}, "base")
    models = {"a": {"base": shifted(3, 0.9)}, "b": {"other": shifted(3, 0.9)}}
    with pytest.raises(
        InputError, match=r"^models: versions .*; expected the same versions for every model$"
    ):
        model_order(models, "base")


@pytest.mark.parametrize("version", ["weighted", "hall"])
def test_prevalence_can_hide_that_the_other_group_is_worse(version: Any) -> None:
    # Group b is ranked better, but rare: its average precision as observed is lower.
    data = world(4, n=4000, concepts=1, prevalence=(0.5, 0.1), shift={0: -0.7})
    versions = {
        name: concept_results(*data, Choices(prevalence=name), concepts=["c"], resampling=QUICK)
        for name in ("observed", version)
    }
    row = by(design_choices(versions, "observed"), concept="c")
    assert row["effect"] == "switches"
    assert row["baseline_value"] > 0.05
    assert row["value"] < -0.05
