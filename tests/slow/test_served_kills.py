"""An audit of a served model in trouble, killed twenty times."""

import numpy as np
import pytest

from chat_server import serving
from troubled_server import N, check_kills


@pytest.mark.slow(whole=True)
@pytest.mark.parametrize("concurrency", [2, 16])
def test_twenty_kills_change_no_table_and_ask_nothing_again(tmp_path, concurrency):
    # Now and then a process is killed before it asks anything.
    goals = np.random.default_rng(concurrency).integers(1, N, 20)
    with serving() as server:
        check_kills(server, tmp_path, goals=sorted(goals.tolist()), concurrency=concurrency)
