"""The example for Stable Diffusion 1.5, run with a tiny pipeline of its form."""

from pathlib import Path

import pytest
import yaml

from diffusion_checkpoints import stable_diffusion
from equipoise import audits
from equipoise.audits.text_to_image.config import Config
from equipoise.planted.scenes.embed import load_clip

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "stable_diffusion" / "audit.yaml"


def test_the_example_asks_the_prompts_of_its_source() -> None:
    config = audits.load_config(EXAMPLE)
    assert isinstance(config, Config)
    prompts = config.prompts
    assert len(prompts.target_names) == 28
    assert {name: len(texts) for name, texts in prompts.attribute_texts.items()} == {
        "men": 4, "women": 4, "non_binary": 3
    }  # fmt: skip
    assert prompts.target_texts["sports"]["gymnast"] == ("an image of gymnast",)
    assert (prompts.counts.attributes, prompts.counts.targets) == (16, 20)
    assert config.pairs == (("men", "women"),)


def test_the_example_is_planned_without_its_models(tmp_path: Path) -> None:
    planned = audits.plan(audits.load_config(EXAMPLE), base=tmp_path)
    made = [run["items"] for run in planned.runs if run["model"] == "stable_diffusion_1_5"]
    assert made == [11 * 16, 28 * 20]
    assert planned.tests == 28 + 2 * 28


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_the_example_runs_with_the_small_pipeline(tmp_path: Path) -> None:
    values = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    # The planted pipeline reads 16 tokens of its own words; Stable Diffusion reads 77.
    tiny = stable_diffusion(tmp_path / "tiny", length=77)
    values["generators"]["stable_diffusion_1_5"] |= {"model": f"diffusers:{tiny}", "steps": 2}
    values["prompts"]["images"] = {"attributes": 1, "targets": 1}
    values["models"] = {"large_14": {"model": load_clip("biased")}}
    values["resampling"]["replicates"] = 20
    result = audits.run(audits.parse_config(values), base=tmp_path)
    scores = [
        f for f in result.findings if (f.metric, f.version) == ("mcas", "large_14, guidance 7.5")
    ]
    assert len(scores) == 28 + 11
    assert {f.subject for f in result.findings if f.metric == "share_mad"} >= {
        "engineer",
        "nurse treating a patient",
    }
    assert set(result.manifest.models) == {"stable_diffusion_1_5", "large_14"}
    planes = result.tables["plane"].to_pylist()
    assert {row["set"] for row in planes} == {"targets", "men", "women", "non_binary"}
