"""Models that several tests fit, on one thread: sums of more differ in their last bits."""

import pytest
import torch

from mitigate.scenes import base


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def clip():
    return base()
