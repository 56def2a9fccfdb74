"""Audits of questions: how often a planted gap is found, and a model that answers by position."""

import pytest

from conclusions import worlds
from equipoise import audits
from equipoise.core.finding import REAL

pytestmark = pytest.mark.slow
BLOCKS, WORLDS = 5, 20


def results(block, **world):
    for place in range(WORLDS):
        values = worlds.questions(1000 * block + place, **world)
        yield audits.run(audits.parse_config(values))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_gap_of_20_points_is_found_in_200_scenes(block):
    leads = [result.conclusions[0] for result in results(block, gap=0.2, scenes=200)]
    found = sum(lead.metric == "paired_outcome_gap" and lead.verdict in REAL for lead in leads)
    # 99 of 100 are found: 18 of 20 or more, but for 1 of 1,000 blocks.
    assert found >= 18


@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_model_that_answers_by_position_never_shows_a_disparity_of_groups(block):
    for result in results(block, gap=0.2, inconsistency=1.0, scenes=50):
        assert result.conclusions[0].metric == "order_inconsistency"
        real = [finding for finding in result.findings if finding.verdict in REAL]
        assert {finding.metric for finding in real} == {"order_inconsistency"}
