"""The two readers of the scenes, trained once for all tests of a process."""

from functools import cache

import pytest
import torch

from tools.planted.readers import train_reader


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    # Several threads spin longer over models this small than they work.
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def reader():
    """Return the network that reads the glyph, or the frame."""
    return cache(train_reader)
