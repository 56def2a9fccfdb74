"""The small world, made once; each test has a copy of its own."""

import shutil

import pytest

from audits.live_models import worlds


@pytest.fixture(scope="session")
def template_world(tmp_path_factory):
    root = tmp_path_factory.mktemp("scenes") / "world"
    worlds.make(root)
    return root


@pytest.fixture
def world(template_world, tmp_path):
    """A folder with pictures, tables and a model, and no evidence."""
    root = tmp_path / "world"
    shutil.copytree(template_world, root)
    return root
