"""Checkpoints are made once for all tests of a process."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from model_checkpoints import FAMILIES


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of a tiny checkpoint of a family, made when it is first asked for."""

    torch = pytest.importorskip("torch", reason="could not import torch")
    # Several threads spin longer over models this small than they work.
    torch.set_num_threads(1)

    @cache
    def made(family: str) -> Path:
        return FAMILIES[family](tmp_path_factory.mktemp(family))

    return made
