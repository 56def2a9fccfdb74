"""Cards are complete, equally strict within a kind, and in the docs."""

from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import get_args

import pytest

from equipoise.metrics.cards import CARDS, Card
from equipoise.metrics.chi_square import Statistic

DOCS = Path(__file__).parents[2] / "docs" / "metrics"
NAMES = (
    "accuracy",
    "worst_group_accuracy",
    "accuracy_gap",
    "demographic_parity",
    "equalized_odds",
    "rates",
    "true_positive_rate",
    "false_positive_rate",
    "true_negative_rate",
    "false_negative_rate",
    "precision",
    "negative_predictive_value",
    "selection_rate",
    "accuracy_difference",
    "hit_rate",
    "cramers_v",
    "phi",
    "tschuprows_t",
    "cramers_v_corrected",
    "effect_sizes",
    "effect_size_mean",
    "skewsize",
    "unanswered_rate",
)


def test_every_metric_has_a_card() -> None:
    assert {*NAMES, *get_args(Statistic)} <= {*CARDS}


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: card.name)
def test_cards_are_complete(card: Card) -> None:
    assert CARDS[card.name] is card
    optional = {"threshold", "parameters", "errata", "also"}
    for one in fields(Card):
        if one.name not in optional:
            assert str(getattr(card, one.name)).strip(), one.name
    assert "debias" not in card.definition.lower()


def test_thresholds_are_equal_within_a_kind() -> None:
    cards = {name: card for name, card in CARDS.items() if card.family == "predictions"}
    assert {name for name, card in cards.items() if card.threshold is None} == {"rates", "skewsize"}
    effects = {*get_args(Statistic), "effect_sizes", "effect_size_mean"}
    assert {CARDS[name].threshold for name in effects} == {0.1}
    others = {card.threshold for name, card in cards.items() if name not in effects}
    assert others == {0.05, None}


def test_cards_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'threshold'"):
        CARDS["phi"].threshold = 0.0  # type: ignore[misc]


def test_every_card_is_in_the_docs() -> None:
    index = (DOCS / "README.md").read_text()
    for name in CARDS:
        assert f"| `{name}` |" in index, name
    for one in fields(Card):
        assert f"| {one.name} |" in index, one.name


def test_cards_that_several_audits_measure_name_them() -> None:
    for name in ("alignment", "normalized_similarity_mad"):
        assert "similarity" in CARDS[name].also
    families = {card.family for card in CARDS.values()}
    assert all({*card.also} <= families - {card.family} for card in CARDS.values())
