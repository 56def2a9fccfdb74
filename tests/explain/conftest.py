"""Tiny checkpoints, and the two readers of the scenes, made once for all tests of a process."""

from functools import cache

import pytest

from model_checkpoints import FAMILIES
from tools.planted.readers import train_reader


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    import torch

    # Several threads spin longer over models this small than they work.
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """Return a tiny model of a family with random weights."""
    from equipoise.models import load_model

    @cache
    def made(family):
        folder = FAMILIES[family](tmp_path_factory.mktemp(family))
        return load_model(f"hf:{folder}", device="cpu", dtype="float32", backend="torch")

    return made


@pytest.fixture(scope="session")
def reader():
    """Return the network that reads the glyph, or the frame."""
    return cache(train_reader)
