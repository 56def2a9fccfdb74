"""The planted pipeline, from captions to kept sets."""

from pathlib import Path

from equipoise import audits
from equipoise.planted.scenes import HUES, SUBJECTS
from generation_models import adds_up, judged, scenes


def test_filters_keep_the_better_sets_of_the_planted_pipeline(tmp_path: Path) -> None:
    config = scenes(SUBJECTS[:12], HUES[:3], candidates=1, steps=4)
    result = audits.run(config, base=tmp_path)
    right, _, kept = judged(result, tmp_path / "evidence")
    assert 0.0 < kept.mean() < 1.0
    assert right[kept].mean() > right.mean()
    assert adds_up(result)
    assert result.tables["stages"].to_pylist()[-1]["images_after"] == kept.sum()
