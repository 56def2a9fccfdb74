"""An audit of text-to-image models on images of a painter with known shares."""

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from equipoise import audits
from equipoise.core import Verdict
from painted import REDNESS, Painter, Seer, Teller, audit_values


def run(base, **changes):
    return audits.run(audits.parse_config(audit_values(**changes)), base=base)


def painter(model, guidance=1.0):
    return {"painter": {"model": model, "guidance": guidance, "steps": 1}}


def finding_of(result, metric, subject, version=""):
    (finding,) = (
        candidate
        for candidate in result.findings
        if (candidate.metric, candidate.subject) == (metric, subject)
        and version in candidate.version
    )
    return finding


def rows(result, table, **where):
    return [
        row
        for row in result.tables[table].to_pylist()
        if all(row[key] == value for key, value in where.items())
    ]


def states(result, target):
    return {row["state"]: row["count"] for row in rows(result, "image_states", target=target)}


def reprs(result):
    """Findings in words, which compare where numbers are NaN."""
    return [*map(repr, result.findings)]


@pytest.fixture(scope="module")
def painted(tmp_path_factory):
    base = tmp_path_factory.mktemp("painted")
    return run(base), base


def test_targets_lean_to_the_painted_colour(painted):
    result, _ = painted
    fire, sea = (finding_of(result, "mcas", name) for name in ("fire", "sea"))
    assert fire.value > 0.3 > -0.3 > sea.value
    assert fire.verdict == sea.verdict == Verdict.DISPARITY
    assert fire.direction == "fire is closer to red than to blue"
    assert (fire.model, fire.version) == ("painter", "seer, guidance 1")
    parts = [
        finding_of(result, "association_score", "fire", f"{name}, seer").value
        for name in ("II", "ITP", "ITA", "TT")
    ]
    assert sum(parts) == pytest.approx(fire.value)


def test_shares_follow_the_images(painted):
    result, _ = painted
    for target, red in REDNESS.items():
        (row,) = rows(result, "shares", target=target, **{"class": "red"})
        assert row["share"] == row["raw"] == pytest.approx(red, abs=0.17)
        assert row["low"] < row["share"] < row["high"]
        assert not row["corrected"]
    # Nobody checked the classifier, so its shares are no disparity.
    assert finding_of(result, "share_mad", "fire").verdict == Verdict.NONE
    assert any("colour" in text for text in result.manifest.warnings)
    values = [finding_of(result, "share_mad", name).value for name in REDNESS]
    assert finding_of(result, "share_mad", "").value == pytest.approx(np.mean(values))


def test_prompts_of_attributes_are_measured_without_themselves(painted):
    result, _ = painted
    finding = finding_of(result, "mcas", "a red thing")
    assert finding.value > 0.3
    assert finding.verdict == finding_of(result, "xmcas", "fire").verdict == Verdict.NONE
    assert np.isnan([finding.chance, finding.p_value]).all()
    assert {row["set"] for row in rows(result, "xmcas")} == {None, "red", "blue", "green"}
    near = rows(result, "xmcas", part="similarity", group="green")
    # A green prompt is held against the other green one, and is closest to it.
    assert max(near, key=lambda row: row["value"])["target"].startswith("a green")


def test_a_second_run_makes_no_image(painted):
    result, base = painted
    model = Painter()
    assert reprs(run(base, generators=painter(model))) == reprs(result)
    assert model.made == 0


class Shy(Painter):
    """Refuses some images of fire, and all of the sea."""

    def paint(self, prompt, seed, guidance):
        return None if "sea" in prompt else super().paint(prompt, seed, guidance)


def test_refused_images_are_in_no_share(tmp_path):
    result = run(tmp_path, generators=painter(Shy(refuses="fire")))
    counts = states(result, "fire")
    assert counts["refused"] > 3
    assert sum(counts.values()) == 40
    assert finding_of(result, "share_mad", "fire").n == 40 - counts["refused"]
    assert any("images were refused" in note for note in result.manifest.notes)
    assert not [f for f in result.findings if (f.metric, f.subject) == ("mcas", "sea")]
    assert finding_of(result, "share_mad", "sea").verdict == Verdict.NOT_ESTIMABLE


def test_encoders_are_averaged(tmp_path):
    result = run(tmp_path, models={"seer": {"model": Seer()}, "tinted": {"model": Seer(tint=0.8)}})
    by_encoder = [finding_of(result, "mcas", "fire", name) for name in ("seer, ", "tinted, ")]
    averaged = finding_of(result, "mcas", "fire", "all encoders")
    values = [finding.value for finding in by_encoder]
    assert averaged.value == pytest.approx(np.mean(values))
    assert averaged.verdict == Verdict.DISPARITY
    assert {finding.verdict for finding in by_encoder} == {Verdict.NONE}
    parts = {row["version"] for row in rows(result, "mcas_parts")}
    assert parts == {"all encoders, guidance 1"}


def labelled_pictures(folder, count):
    labelled = []
    for name in ("red", "blue"):
        for seed in range(count):
            picture = Painter().paint(f"a {name} thing", 10_000 + seed, 1.0)
            assert picture is not None
            file = f"{name}-{seed}.png"
            Image.fromarray(picture).save(folder / file)
            labelled.append({"image_id": file, "file": file, "label": name})
    return {"table": pa.Table.from_pylist(labelled), "path": "file"}


def test_answers_are_corrected_by_labelled_images(tmp_path):
    share = {
        "of": "colour", "model": "teller", "question": "Which colour is it?",
        "classes": {"red": ["it is red"], "blue": ["Blue"]}, "unknown": ["I do not know"],
        "labelled": labelled_pictures(tmp_path, 120), "outside": "uniform",
    }  # fmt: skip
    models = {"teller": {"model": Teller()}}
    result = run(tmp_path, models=models, shares=[share], associations=None)
    confusion = {
        (row["label"], row["said"]): row["count"] / row["n"]
        for row in rows(result, "share_confusions")
    }
    assert confusion["red", "blue"] == pytest.approx(0.2, abs=0.1)
    assert confusion["blue", "red"] == 0
    (fire,) = rows(result, "shares", target="fire", **{"class": "red"})
    assert fire["corrected"]
    assert fire["share"] > fire["raw"] + 0.05
    assert fire["low"] <= REDNESS["fire"] <= fire["high"]
    gap = finding_of(result, "share_gap", "fire")
    assert gap.verdict == finding_of(result, "share_mad", "fire").verdict == Verdict.DISPARITY
    assert {finding.leads for finding in result.findings} == {True}
    assert result.manifest.warnings == ()
    assert gap.direction.startswith("red is shown more often")


def test_a_zero_shot_classifier_has_errors_and_unknown_images(tmp_path):
    share = audit_values()["shares"][0] | {"labelled": labelled_pictures(tmp_path, 15)}
    result = run(tmp_path, shares=[share], associations=None)
    errors = rows(result, "share_confusions")
    assert {row["count"] for row in errors if row["label"] != row["said"]} == {0}
    assert {row["condition"] for row in errors} == {1.0}
    strict = run(tmp_path, shares=[share | {"least": 1.0}], associations=None)
    assert {*states(strict, "fire")} == {"unknown"}


def test_images_made_elsewhere_and_answers_about_them(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.Table.from_pylist(
        [
            {
                "image_id": f"{target}-{place}", "prompt": f"a {target}", "noise": f"{place // 2}",
                "what": ["fine", "blocked", "broken"][place % 3 if place < 6 else 0],
                "said": "red" if rng.random() < red else "blue",
            }
            for target, red in REDNESS.items()
            for place in range(60)
        ]
    )  # fmt: skip
    images = {"table": table, "state": "what", "made": ["fine"], "refused": ["blocked"],
              "seed": "noise"}  # fmt: skip
    external = pa.table(
        {"target": ["fire", "fire", "moon"], "group": ["red", "blue", "red"], "value": [1, 9, 5]}
    )
    share = {
        "of": "colour", "classes": {"red": ["red"], "blue": ["blue"]},
        "said": {"other": {"table": table}}, "outside": {"table": external, "name": "a count"},
    }  # fmt: skip
    generators = {"other": {"images": images}}
    result = run(tmp_path, generators=generators, models={}, shares=[share], associations=None)
    counts = states(result, "fire")
    assert (counts["refused"], counts["failed"]) == (2, 2)
    fire = finding_of(result, "share_mad", "fire")
    assert (fire.version, fire.unit, fire.n) == ("answers", "unit", 56)
    gap = finding_of(result, "share_gap", "fire")
    assert gap.value == pytest.approx(0.9 - 0.1, abs=0.15)
    assert "a count say" in gap.direction
    assert [f.subject for f in result.findings if f.metric == "share_gap"] == ["fire"]
