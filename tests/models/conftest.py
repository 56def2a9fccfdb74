"""Checkpoints are made once for all tests of a process."""

from functools import cache

import pytest
import torch

from equipoise.models import load_model
from model_checkpoints import FAMILIES


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """Return the folder of a tiny checkpoint of a family, made when it is first asked for."""
    # Several threads spin longer over models this small than they work.
    torch.set_num_threads(1)

    @cache
    def made(family):
        return FAMILIES[family](tmp_path_factory.mktemp(family))

    return made


@pytest.fixture(scope="module")
def folder(checkpoint, family):
    """The checkpoint of the family that a module's own fixture names."""
    return checkpoint(family)


@pytest.fixture(scope="module")
def model(folder):
    return load_model(f"hf:{folder}", device="cpu")
