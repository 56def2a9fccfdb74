"""A configuration file in the working directory."""

from pathlib import Path
from typing import Any

import pytest

from equipoise.audits.config import load_config
from equipoise.audits.predictions.config import Config


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a text as c.yaml and load it by that name."""
    monkeypatch.chdir(tmp_path)

    def loaded(content: str | bytes) -> Config:
        raw = content if isinstance(content, bytes) else content.encode()
        Path("c.yaml").write_bytes(raw)
        return load_config("c.yaml")

    return loaded
