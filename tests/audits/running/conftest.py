"""The small world, made once; each test has a copy of its own."""

import shutil
from pathlib import Path

import pytest

from audits.running import worlds


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("scenes") / "world"
    worlds.make(root)
    return root


@pytest.fixture
def world(made: Path, tmp_path: Path) -> Path:
    """A folder with pictures, tables and a model, and no evidence."""
    root = tmp_path / "world"
    shutil.copytree(made, root)
    return root
