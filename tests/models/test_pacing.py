"""How many requests to a server may be under way."""

import pytest

from equipoise.models.pacing import Pace


def test_trouble_halves_and_answers_add_one_for_as_many():
    pace = Pace(16)
    pace.slow_down(16)
    assert pace.allowed == 8
    for _ in range(9):
        pace.speed_up()
    assert pace.allowed == 9
    for _ in range(500):
        pace.speed_up()
    assert pace.allowed == 16


def test_requests_that_met_the_same_trouble_slow_down_once():
    pace = Pace(16)
    for _ in range(5):
        pace.slow_down(16)
    assert pace.allowed == 8
    pace.slow_down(8)
    assert pace.allowed == 4


def test_one_request_is_always_allowed():
    pace = Pace(1)
    for _ in range(3):
        pace.slow_down(1)
    with pace:
        assert pace.allowed == 1


def test_all_wait_as_long_as_the_server_asks(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("equipoise.models.pacing.time.monotonic", lambda: now[0])
    pace = Pace(4)
    pace.slow_down(4, 30.0)
    pace.slow_down(4, 5.0)
    assert pace.wait() == pytest.approx(30.0)
    now[0] += 31.0
    assert pace.wait() == 0.0
