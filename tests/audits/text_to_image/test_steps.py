"""Bias by denoising step: a planted onset is found, and none where none was planted."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from diffusion_checkpoints import flux, stable_diffusion, stable_diffusion_3, stable_diffusion_xl
from equipoise import audits
from equipoise.core import ConfigError, ModelError, Verdict
from painted import Painter, Seer, SteppedPainter, audit_values

STEPS = 6
PROMPTS = {
    "template": "a {}",
    "attributes": {"red": ["red thing", "red shape"], "blue": ["blue thing", "blue shape"]},
    "targets": ["fire", "flag"],
    "images": {"attributes": 6, "targets": 40},
}


def generator(model, at_steps=(2, 3, 4, 5, "last")):
    return {"model": model, "guidance": 1.0, "steps": STEPS, "at_steps": [*at_steps]}


def values(model, **changes):
    settings = {
        "prompts": PROMPTS, "generators": {"painter": generator(model)},
        "models": {"seer": {"model": Seer()}}, "resampling": {"replicates": 60, "seed": 3},
    }  # fmt: skip
    return audit_values(**settings | changes)


def run(base, start, **changes):
    config = audits.parse_config(values(SteppedPainter(start=start), **changes))
    return audits.run(config, base=base)


def onsets(result, quantity, target="fire"):
    return [
        row
        for row in result.tables["onsets"].to_pylist()
        if (row["quantity"], row["target"]) == (quantity, target)
    ]


def has_onset(result, quantity, target):
    return [row["onset"] is not None for row in onsets(result, quantity, target)]


def labelled_shares(folder):
    """Shares by the seer, corrected for its errors on a few labelled pictures: it has none."""
    rows = []
    for name, seed in product(("red", "blue"), range(12)):
        file = f"{name}-{seed}.png"
        Image.fromarray(Painter().paint(f"a {name} thing", seed, 1.0)).save(folder / file)
        rows.append({"image_id": file, "file": file, "label": name})
    labelled = {"table": pa.Table.from_pylist(rows), "path": "file", "root": str(folder)}
    return [audit_values()["shares"][0] | {"labelled": labelled}]


@pytest.fixture(scope="module")
def stepped(tmp_path_factory):
    base = tmp_path_factory.mktemp("stepped")
    return run(base, 4, shares=labelled_shares(base)), base


def test_the_curve_finds_the_planted_step(stepped):
    result, _ = stepped
    (share,) = onsets(result, "share")
    assert (share["onset"], share["class"], share["seeds"], share["steps"]) == (4, "red", 40, 5)
    pixels, latents = onsets(result, "II")
    assert (pixels["version"], latents["version"]) == ("II, seer, guidance 1",
                                                       "II, latents, guidance 1")  # fmt: skip
    for row in (share, pixels, latents):
        assert abs(row["onset"] - 4) <= 1
        assert row["low"] <= 4 <= row["high"]
    for quantity in ("share", "II", "MCAS"):
        assert not any(has_onset(result, quantity, "flag"))
    # The prompt leans from the first step on: MCAS holds its text, II doesn't.
    assert onsets(result, "MCAS")[0]["onset"] == 2
    (finding,) = (
        f for f in result.findings if f.metric == "onset" and f.groups == "colour" and f.value > 0
    )
    assert str(finding.direction) == "red is shown more often than an equal share for fire"
    assert (finding.verdict, finding.leads) == (Verdict.NONE, False)


def test_every_step_has_interval_chance_size_and_verdict(stepped):
    result, _ = stepped
    for metric, version in (("share_mad", "seer"), ("mcas", "seer"), ("association_score",
                                                                      "II, latents")):  # fmt: skip
        by_version = {
            f.version: f
            for f in result.findings
            if f.metric == metric and f.subject == "fire" and f.version.startswith(version)
        }
        first = f"{version}, guidance 1"
        assert {*by_version} == {first, *(f"{first}, step {step}" for step in range(2, STEPS))}
        for name, finding in by_version.items():
            numbers = [finding.ci_low, finding.ci_high, finding.chance, finding.p_value]
            assert np.isfinite(numbers).all()
            assert finding.n >= 40
            assert finding.tested
            assert finding.leads == (name == first and metric != "association_score")
    versions = {row["version"]: row for row in result.tables["steps"].to_pylist()}
    assert versions["seer, guidance 1, step 2"]["step"] == 2
    final = versions["seer, guidance 1"]
    assert (final["step"], final["final"]) == (STEPS, True)
    shares = [
        (row["step"], row["share"])
        for row in result.tables["step_shares"].to_pylist()
        if (row["target"], row["class"]) == ("fire", "red")
    ]
    assert [step for step, _ in sorted(shares)] == [2, 3, 4, 5, 6]
    assert dict(shares)[3] < 0.7 < dict(shares)[4]
    assert result.manifest.counts["painter"] == {"image": 104}


def test_without_a_planted_bias_no_step_is_found(tmp_path):
    result = run(tmp_path, None)
    for quantity in ("share", "II"):
        for target in ("fire", "flag"):
            assert not any(has_onset(result, quantity, target))


@pytest.mark.parametrize("start", [2, 6])
def test_other_steps_are_found(start, tmp_path):
    result = run(tmp_path, start, associations=None)
    (share,) = onsets(result, "share")
    assert abs(share["onset"] - start) <= 1
    assert "II" not in result.tables["onsets"]["quantity"].to_pylist()


def test_images_at_steps_are_made_once_and_planned(stepped, tmp_path):
    result, base = stepped
    model = SteppedPainter(start=4)
    again = run(base, 4, shares=labelled_shares(base), generators={"painter": generator(model)})
    assert model.made == 0
    assert [*map(repr, again.findings)] == [*map(repr, result.findings)]
    plan = audits.plan(audits.parse_config(values(SteppedPainter(start=4))), base=tmp_path)
    made = {row["on"]: row for row in plan.runs if row["model"] == "painter"}
    targets = made["painter, targets at guidance 1"]
    assert (targets["items"], targets["at_steps"], targets["passes"]) == (80, 320, 480)
    seen = {row["on"]: row["items"] for row in plan.runs if row["model"] == "seer"}
    assert seen["painter, targets at guidance 1, step 5"] == 80


def test_final_images_are_audited_as_without_steps(stepped, tmp_path):
    result, _ = stepped
    plain = run(tmp_path, 4, generators={"painter": generator(SteppedPainter(start=4), ["last"])})
    assert not {"onsets", "steps", "step_shares"} & {*plain.tables}
    numbers = {
        finding.version: (finding.value, finding.ci_low, finding.ci_high)
        for finding in result.findings
        if (finding.metric, finding.subject) == ("mcas", "fire")
    }
    (finding,) = (f for f in plain.findings if (f.metric, f.subject) == ("mcas", "fire"))
    assert numbers[finding.version] == (finding.value, finding.ci_low, finding.ci_high)


@pytest.mark.parametrize("at_steps", [[6], [0], [2, 2], ["first"]])
def test_steps_that_there_are_not(at_steps):
    painters = {"painter": generator(SteppedPainter(), at_steps)}
    with pytest.raises(ConfigError) as error:
        audits.parse_config(values(None, generators=painters))
    assert "at_steps" in str(error.value)


def test_a_generator_that_shows_no_steps(tmp_path):
    with pytest.raises(ModelError) as error:
        audits.run(audits.parse_config(values(Painter())), base=tmp_path)
    assert "at_steps" in str(error.value)


@pytest.mark.parametrize("make", [stable_diffusion, stable_diffusion_xl, stable_diffusion_3, flux])
def test_an_audit_at_steps_of_every_class_of_pipeline(make, tmp_path):
    make(tmp_path / "model")
    tiny = {
        "model": "diffusers:model", "guidance": 3.0, "steps": 2, "at_steps": [1, "last"],
        "height": 16, "width": 16, "device": "cpu",
    }  # fmt: skip
    few = {"template": "a {}", "attributes": {"red": ["red dog"], "blue": ["blue dog"]},
           "targets": ["cat"], "images": {"attributes": 2, "targets": 3}}  # fmt: skip
    changed = values(None) | {"prompts": few, "generators": {"tiny": tiny}}
    result = audits.run(audits.parse_config(changed), base=tmp_path)
    assert {row["step"] for row in result.tables["steps"].to_pylist()} == {1, 2}
    assert len(onsets(result, "II", "cat")) == 2
    states = [
        row for row in result.tables["image_states"].to_pylist() if "step 1" in row["version"]
    ]
    assert sum(row["count"] for row in states) == 3
