"""What an audit of text-to-image models finds of images that a painter makes as it is told."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise import audits, report
from equipoise.cli.pages import page_of
from equipoise.core import Finding, Verdict
from equipoise.core.result import AuditResult
from page_text import check_snapshot, page_text
from painted import PROMPTS, REDNESS, Painter, Seer, Teller, asked


def run(values: dict[str, Any], base: Path) -> AuditResult:
    return audits.run(audits.parse_config(values), base=base)


def of(result: AuditResult, metric: str, subject: str, version: str = "") -> Finding:
    found = [
        one
        for one in result.findings
        if (one.metric, one.subject) == (metric, subject) and version in one.version
    ]
    assert len(found) == 1, [one.version for one in found]
    return found[0]


def told(result: AuditResult) -> list[str]:
    """Findings in words, which compare where numbers are NaN."""
    return [repr(one) for one in result.findings]


@pytest.fixture(scope="module")
def painted(tmp_path_factory: pytest.TempPathFactory) -> tuple[AuditResult, Path]:
    base = tmp_path_factory.mktemp("painted")
    return run(asked(), base), base


def test_targets_lean_to_what_the_painter_shows(painted: tuple[AuditResult, Path]) -> None:
    result, _ = painted
    fire, sea = (of(result, "mcas", name) for name in ("fire", "sea"))
    assert fire.value > 0.3 > -0.3 > sea.value
    assert fire.direction == "fire is closer to red than to blue"
    assert fire.verdict == sea.verdict == Verdict.DISPARITY
    assert fire.model == "painter"
    assert fire.version == "seer, guidance 1"
    assert fire.groups == "red against blue"
    parts = [
        of(result, "association_score", "fire", f"{name}, seer").value
        for name in ("II", "ITP", "ITA", "TT")
    ]
    assert sum(parts) == pytest.approx(fire.value)


def test_shares_are_those_of_the_images(painted: tuple[AuditResult, Path]) -> None:
    result, _ = painted
    shares = {
        row["target"]: row for row in result.tables["shares"].to_pylist() if row["class"] == "red"
    }
    for target, red in REDNESS.items():
        assert shares[target]["share"] == pytest.approx(red, abs=0.17)
        assert shares[target]["share"] == shares[target]["raw"]
        assert shares[target]["low"] < shares[target]["share"] < shares[target]["high"]
        assert not shares[target]["corrected"]
    fire, flag = (of(result, "share_mad", name) for name in ("fire", "flag"))
    assert fire.verdict == Verdict.DISPARITY
    assert flag.verdict != Verdict.DISPARITY
    assert fire.direction == (
        "share for “fire”: lowest for blue (10.0\u00a0%), highest for red (90.0\u00a0%)"
    )
    mean = of(result, "share_mad", "")
    every = [of(result, "share_mad", name).value for name in REDNESS]
    assert mean.value == pytest.approx(np.mean(every))
    assert any("without labelled images" in note for note in result.manifest.notes)


def test_prompts_of_attributes_are_measured_without_themselves(
    painted: tuple[AuditResult, Path],
) -> None:
    result, _ = painted
    own = of(result, "mcas", "a red thing")
    assert own.value > 0.3
    assert own.verdict == Verdict.NONE
    assert own.reason.startswith("an attribute's own lean is no disparity")
    assert np.isnan([own.chance, own.p_value]).all()
    plane = result.tables["plane"].to_pylist()
    kinds = {row["set"]: row["target"] for row in plane}
    assert kinds.keys() == {"targets", "red", "blue", "green"}
    near = {
        row["target"]: row["value"]
        for row in plane
        if (row["part"], row["group"]) == ("similarity", "green")
    }
    # A green prompt is held against the other green one, and is closest to it.
    assert max(near, key=lambda one: near[one]) in ("a green thing", "a green shape")
    angle = of(result, "xmcas", "fire")
    assert angle.verdict == Verdict.NONE


def test_a_second_run_makes_no_image(painted: tuple[AuditResult, Path]) -> None:
    result, base = painted
    painter = Painter()
    values = asked(generators={"painter": {"model": painter, "guidance": 1.0, "steps": 1}})
    again = run(values, base)
    assert painter.made == 0
    assert told(again) == told(result)


def test_a_plan_makes_no_image(tmp_path: Path) -> None:
    painter = Painter()
    values = asked(generators={"painter": {"model": painter, "guidance": [1, 2], "steps": 1}})
    planned = audits.plan(audits.parse_config(values), base=tmp_path)
    assert painter.made == 0
    made = [run["items"] for run in planned.runs if run["model"] == "painter"]
    assert made == [36, 120, 36, 120]
    assert [row["there"] for row in planned.details["images"]] == ["to be made"] * 2
    assert planned.details["prompts"][-1] == {"set": "targets", "prompts": 3}
    assert planned.tests == 2 * (3 + 3)
    assert not any(tmp_path.iterdir())


def test_images_are_made_in_parts_of_the_size_that_is_asked_for(tmp_path: Path) -> None:
    painter = {"model": "python:painted:painter", "guidance": 1.0, "steps": 1}
    found = {}
    for part, most in ((None, 64), (10, 10)):
        values = asked(generators={"painter": painter}) | {"extraction": {"part": part}}
        base = tmp_path / str(part)
        found[part] = run(values, base)
        files = base.glob("evidence/generations/*/part-*.parquet")
        largest = max(pq.read_metadata(file).num_rows for file in files)
        assert most / 2 < largest <= most
        planned = audits.plan(audits.parse_config(values), base=base)
        assert [one["to_do"] for one in planned.runs if one["model"] == "painter"] == [0, 0]
    assert told(found[None]) == told(found[10])
    other = audits.plan(audits.parse_config(values | {"extraction": {"part": 30}}), base=base)
    assert [one["to_do"] for one in other.runs if one["model"] == "painter"] == [36, 120]


def test_what_is_refused_is_a_state_and_in_no_share(tmp_path: Path) -> None:
    painter = {"model": Painter(refuses="fire"), "guidance": 1.0, "steps": 1}
    result = run(asked(generators={"painter": painter}), tmp_path)
    states = {
        row["state"]: row["count"]
        for row in result.tables["image_states"].to_pylist()
        if row["target"] == "fire"
    }
    assert states["refused"] > 3
    assert sum(states.values()) == 40
    fire = of(result, "share_mad", "fire")
    assert fire.n == 40 - states["refused"]
    assert any("images were refused; they are in no share" in n for n in result.manifest.notes)


def test_a_target_that_is_always_refused_is_left_out(tmp_path: Path) -> None:
    @dataclass
    class Shy(Painter):
        def paint(self, prompt: str, seed: int, guidance: float) -> Any:
            return None if "sea" in prompt else super().paint(prompt, seed, guidance)

    result = run(asked(generators={"painter": {"model": Shy(), "steps": 1}}), tmp_path)
    assert not [f for f in result.findings if f.metric == "mcas" and f.subject == "sea"]
    lost = of(result, "share_mad", "sea")
    assert lost.verdict == Verdict.NOT_ESTIMABLE
    assert lost.reason == "no image was named"


def test_guidance_has_a_curve(tmp_path: Path) -> None:
    painter = {"model": Painter(), "guidance": [1, 2], "steps": 1}
    result = run(asked(generators={"painter": painter}), tmp_path)
    curve = {
        (row["metric"], row["subject"], row["guidance"]): row["value"]
        for row in result.tables["guidance"].to_pylist()
    }
    assert curve["share_mad", "", 2.0] > curve["share_mad", "", 1.0]
    assert abs(curve["mcas", "sea", 2.0]) > abs(curve["mcas", "sea", 1.0])
    assert ("mcas", "a red thing", 1.0) not in curve
    assert "Results by guidance" in report.render(result, page_of(result))


def test_encoders_are_averaged_and_their_spread_is_told(tmp_path: Path) -> None:
    models = {"seer": {"model": Seer()}, "tinted": {"model": Seer(tint=0.8)}}
    result = run(asked(models=models), tmp_path)
    each = [of(result, "mcas", "fire", name) for name in ("seer, ", "tinted, ")]
    both = of(result, "mcas", "fire", "all encoders")
    assert both.value == pytest.approx(np.mean([one.value for one in each]))
    assert both.verdict == Verdict.DISPARITY
    assert {one.verdict for one in each} == {Verdict.NONE}
    assert all(one.reason.startswith("one of several encoders") for one in each)
    rows = [r for r in result.tables["encoders"].to_pylist() if r["target"] == "fire"]
    assert [row["encoder"] for row in rows] == ["seer", "tinted"]
    values = [row["value"] for row in rows]
    assert rows[0]["mean"] == pytest.approx(np.mean(values))
    assert rows[0]["sd"] == pytest.approx(np.std(values, ddof=1))
    parts = result.tables["components"].to_pylist()
    assert {row["version"] for row in parts} == {"all encoders, guidance 1"}


def test_answers_are_read_and_corrected_by_labelled_images(tmp_path: Path) -> None:
    labelled = labelled_pictures(tmp_path, 120)
    share = {
        "of": "colour", "model": "teller", "question": "Which colour is it?",
        "classes": {"red": ["it is red"], "blue": ["Blue"]}, "unknown": ["I do not know"],
        "labelled": labelled, "outside": "uniform",
    }  # fmt: skip
    values = asked(models={"teller": {"model": Teller()}}, shares=[share], associations=None)
    result = run(values, tmp_path)
    confusion = {
        (row["label"], row["said"]): row["count"] / row["n"]
        for row in result.tables["share_confusions"].to_pylist()
    }
    assert confusion["red", "blue"] == pytest.approx(0.2, abs=0.1)
    assert confusion["blue", "red"] == 0
    assert confusion["red", "unknown"] < 0.15
    red = {r["target"]: r for r in result.tables["shares"].to_pylist() if r["class"] == "red"}
    assert red["fire"]["corrected"]
    assert red["fire"]["share"] > red["fire"]["raw"] + 0.05
    assert red["fire"]["low"] <= REDNESS["fire"] <= red["fire"]["high"]
    gap = of(result, "share_gap", "fire")
    assert gap.direction.startswith("red is shown more often than equal shares say, by ")
    assert gap.verdict == Verdict.DISPARITY
    assert "transport" in json.loads(gap.parameters)
    assert any("(transport)" in note for note in result.manifest.notes)
    assert not [f for f in result.findings if f.metric == "mcas"]


def labelled_pictures(folder: Path, each: int) -> dict[str, Any]:
    from PIL import Image

    rows = []
    for name in ("red", "blue"):
        for seed in range(each):
            made = Painter().paint(f"a {name} thing", 10_000 + seed, 1.0)
            assert made is not None
            Image.fromarray(made).save(folder / f"{name}-{seed}.png")
            rows.append({"image_id": f"{name}-{seed}", "file": f"{name}-{seed}.png", "label": name})
    return {"table": pa.Table.from_pylist(rows), "path": "file"}


def test_labelled_images_of_a_zero_shot_classifier_are_looked_at(tmp_path: Path) -> None:
    share = asked()["shares"][0] | {"labelled": labelled_pictures(tmp_path, 15)}
    result = run(asked(shares=[share], associations=None), tmp_path)
    errors = result.tables["share_confusions"].to_pylist()
    assert {row["count"] for row in errors if row["label"] != row["said"]} == {0}
    assert {row["condition"] for row in errors} == {1.0}


def test_images_below_a_probability_are_unknown(tmp_path: Path) -> None:
    share = asked()["shares"][0] | {"least": 1.0}
    result = run(asked(shares=[share], associations=None), tmp_path)
    states = {row["state"] for row in result.tables["image_states"].to_pylist()}
    assert states == {"unknown"}
    assert of(result, "share_mad", "fire").reason == "no image was named"


def test_images_made_elsewhere_and_what_was_said_of_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [
        {
            "image_id": f"{target}-{place}", "prompt": f"a {target}", "noise": f"{place // 2}",
            "what": ["fine", "blocked", "broken"][place % 3 if place < 6 else 0],
            "said": "red" if rng.random() < red else "blue",
        }
        for target, red in REDNESS.items()
        for place in range(60)
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows)
    images = {"table": table, "state": "what", "made": ["fine"], "refused": ["blocked"],
              "seed": "noise"}  # fmt: skip
    share = {
        "of": "colour", "classes": {"red": ["red"], "blue": ["blue"]},
        "said": {"other": {"table": table}},
    }  # fmt: skip
    outside = pa.table(
        {"target": ["fire", "fire", "moon"], "group": ["red", "blue", "red"], "value": [1, 9, 5]}
    )
    share["outside"] = {"table": outside, "name": "a count of fires"}
    values = asked(generators={"other": {"images": images}}, models={}, shares=[share])
    values["associations"] = None
    result = run(values, tmp_path)
    states = {
        row["state"]: row["count"]
        for row in result.tables["image_states"].to_pylist()
        if row["target"] == "fire"
    }
    assert (states["refused"], states["failed"]) == (2, 2)
    fire = of(result, "share_mad", "fire")
    assert fire.version == "answers"
    assert fire.unit == "unit"
    assert fire.n == 56
    gap = of(result, "share_gap", "fire")
    assert gap.value == pytest.approx(0.9 - 0.1, abs=0.15)
    assert "a count of fires say, by" in gap.direction
    assert [f.subject for f in result.findings if f.metric == "share_gap"] == ["fire"]
    again = run(values, tmp_path)
    assert told(again) == told(result)


def test_vectors_on_disk_and_sets_with_one_prompt(tmp_path: Path) -> None:
    prompts = PROMPTS | {"attributes": {"red": ["red thing"], "blue": ["blue thing"]}}
    seer, painter = Seer(), Painter()
    texts = ["a red thing", "a blue thing", "a fire", "a flag", "a sea"]
    rows = [
        (f"{text}/{seed}", text, painter.paint(text, seed, 1.0)) for text in texts
        for seed in range(12)
    ]  # fmt: skip
    np.save(tmp_path / "images.npy", seer.embed_images([one for _, _, one in rows]))
    np.save(tmp_path / "texts.npy", seer.embed_texts(texts))
    table = pa.table({"image_id": [r[0] for r in rows], "prompt": [r[1] for r in rows]})
    model = {"images": {"other": {"file": "images.npy"}}, "texts": {"file": "texts.npy"}}
    values = asked(
        prompts=prompts, generators={"other": {"images": {"table": table}}},
        models={"vectors": model}, shares=[],
    )  # fmt: skip
    result = run(values, tmp_path)
    assert of(result, "mcas", "fire", "vectors").value > 0
    assert of(result, "mcas", "fire").version == "vectors"
    assert not [f for f in result.findings if f.subject == "a red thing"]
    notes = " ".join(result.manifest.notes)
    assert "red has one prompt, which cannot be held against itself" in notes
    assert "other: seeds are not known, so every image counts as independent." in notes


def test_the_page_of_the_example() -> None:
    example = Path(__file__).resolve().parents[3] / "examples" / "text_to_image"
    result = audits.run(audits.load_config(example / "audit.yaml"), base=example)
    text = page_text(report.render(result, page_of(result)))
    check_snapshot(Path(__file__).with_name("page.txt"), text)
