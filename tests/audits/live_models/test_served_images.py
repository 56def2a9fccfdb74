"""Audits of served text-to-image models: images, refusals by target, plans, kills."""

import os
import signal
import subprocess
import sys
import time

import polars as pl
import pytest
import yaml

from equipoise import audits
from equipoise.core import ConfigError, ModelError
from equipoise.counterfactuals import read_generated
from generation_models import Looker
from generation_models import Painter as ShapePainter
from interface_servers import ImageServer, encoded, image, png, serving
from painted import Painter, audit_values

SENT = ["response_format", "seed", "guidance_scale"]
SOME = {"targets": 12, "attributes": 6}
FEW = {"targets": 4, "attributes": 2}


@pytest.fixture
def server():
    with serving(ImageServer()) as running:
        running.reply = lambda body, _: (200, image(paint(body)), {})
        yield running


def paint(body):
    return Painter().paint(body["prompt"], body["seed"], body.get("guidance_scale", 1.0))


class Local(Painter):
    """Paints as the server does."""

    def paint(self, prompt, seed, guidance):
        return super().paint(prompt, seed % 2**31, guidance)


def config_of(model, images=None, *, max_failures=0.05, **generator):
    values = audit_values(extraction={"max_failures": max_failures})
    if images is not None:
        values["prompts"] = values["prompts"] | {"images": images}
    values["generators"] = {"painter": {"model": model, "guidance": 1.0, "steps": 1} | generator}
    return audits.parse_config(values)


def served(server, images=None, *, max_failures=0.05, **service):
    service = {"image_parameters": SENT, **service}
    name = f"served:{server.url}#tiny"
    return config_of(name, images, max_failures=max_failures, service=service)


def findings(result):
    return [*map(repr, result.findings)]


def test_a_served_model_is_audited_as_the_same_model_here(server, tmp_path):
    result = audits.run(served(server, SOME), base=tmp_path)
    assert findings(result) == findings(audits.run(config_of(Local(), SOME), base=tmp_path))
    assert len(server.requests) == 72
    again = audits.run(served(server, SOME), base=tmp_path)
    assert (findings(again), len(server.requests)) == (findings(result), 72)


def test_refused_failed_and_cut_images_are_counted_by_target(server, tmp_path, monkeypatch):
    monkeypatch.setattr("equipoise.models.served.time.sleep", lambda _: None)

    def reply(body, _):
        if "fire" in body["prompt"]:
            return 400, {"error": {"code": "content_policy_violation"}}, {}
        if "flag" in body["prompt"] and body["seed"] % 2:
            return 500, {}, {}
        if "sea" in body["prompt"]:
            whole = png(paint(body))
            return 200, image(b64_json=encoded(whole[: -30 if body["seed"] % 2 else None])), {}
        return 200, image(paint(body)), {}

    server.reply = reply
    config = served(server, {"targets": 12, "attributes": 2}, attempts=1, max_failures=0.9)
    result = audits.run(config, base=tmp_path)
    states = {
        (row["target"], row["state"]): row["count"]
        for row in result.tables["image_states"].to_pylist()
    }
    rows = pl.read_parquet(tmp_path / "evidence" / "generations" / "*" / "images.parquet")
    failed = rows.filter(pl.col("state") == "failed").select(
        "prompt", stage=pl.col("reason").str.split(":").list.first()
    )
    assert states["fire", "refused"] == 12
    assert {*failed.iter_rows()} == {("a flag", "request"), ("a sea", "cut")}
    for target in ("flag", "sea"):
        assert states[target, "failed"] == failed["prompt"].str.ends_with(target).sum()


def test_a_server_that_refuses_the_key_stops_the_run_at_once(server, tmp_path):
    server.reply = lambda *_: (401, {"error": {"message": "wrong key"}}, {})
    with pytest.raises(ModelError, match="wrong key"):
        audits.run(served(server, FEW, concurrency=1), base=tmp_path)
    assert len(server.requests) == 1


def test_a_plan_asks_nobody_and_says_who_gets_what(server, tmp_path):
    config = config_of(
        "served:https://images.example/v1#m", FEW, negative_prompt="blur",
        service={"allow_hosts": ["images.example"], "image_parameters": ["response_format"]},
    )  # fmt: skip
    notes = audits.plan(config, base=tmp_path).notes
    assert any("12 requests" in note and "images.example" in note for note in notes)
    assert any("guidance" in note and "negative_prompt" in note for note in notes)
    assert any("No seed" in note for note in notes)
    assert server.headers == []


def test_prompts_stay_here_unless_a_host_is_named(tmp_path):
    config = config_of("served:https://images.example/v1#m", FEW)
    with pytest.raises(ModelError, match="allow_hosts"):
        audits.run(config, base=tmp_path)


def test_an_audit_of_generation_makes_its_images_behind_an_interface(server, tmp_path):
    painter = ShapePainter(wrong="blue", share=0.5)
    server.reply = lambda body, _: (
        200, image(painter.generate([body["prompt"]], seeds=[body["seed"]], sampling=None)[0]), {},
    )  # fmt: skip
    values = {
        "audit": "generation",
        "captions": {"subjects": ["square"], "attributes": {"hue": ["red", "blue"]}},
        "generator": {"model": f"served:{server.url}#tiny", "candidates": 6, "shared": None},
        "filters": {"attributes": {"model": Looker(), "templates": "a {} thing",
                                   "thresholds": {"hue": 1.0}}},
        "min_group_size": 2,
        "resampling": {"replicates": 20},
    }  # fmt: skip
    result = audits.run(audits.parse_config(values), base=tmp_path)
    rejected = {row["group"]: row["share"] for row in result.tables["rejections"].to_pylist()
                if not row["attributes"] and row["check"] != "all"}  # fmt: skip
    assert len(server.requests) == 12
    assert rejected["red"] == 0 < rejected["blue"]


def test_shared_attention_needs_a_model_that_is_loaded_here(server, tmp_path):
    values = {
        "audit": "generation",
        "captions": {"subjects": ["square"], "attributes": {"hue": ["red", "blue"]}},
        "generator": {"model": f"served:{server.url}#tiny"},
        "filters": {"attributes": {"model": Looker(), "templates": "a {} thing",
                                   "thresholds": {"hue": 1.0}}},
    }  # fmt: skip
    with pytest.raises(ModelError, match="control of its attention"):
        audits.run(audits.parse_config(values), base=tmp_path)
    assert server.requests == []


def test_killed_runs_ask_for_no_kept_image_again(server, tmp_path):
    server.reply = lambda body, _: (time.sleep(0.01), (200, image(paint(body)), {}))[1]
    pl.DataFrame({"prompt_id": ["f", "s"], "prompt": ["a fire", "a sea"]}).write_csv(
        tmp_path / "prompts.csv"
    )
    generator = {"model": f"served:{server.url}#tiny", "service": {"concurrency": 1}}
    config = {"prompts": {"table": "prompts.csv", "images": 30}, "generator": generator}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "equipoise", "counterfactuals", "generate", "c.yaml"]
    options = {"cwd": tmp_path, "env": {**os.environ}, "stdout": subprocess.DEVNULL,
               "stderr": subprocess.PIPE}  # fmt: skip
    process = subprocess.Popen(command, **options)
    while process.poll() is None and len(server.requests) < 20:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = subprocess.run(command, check=False, **options)
    assert done.returncode == 0, done.stderr
    assert 60 <= len(server.requests) <= 60 + 1
    (folder,) = (tmp_path / "evidence" / "generations").iterdir()
    generated = read_generated(folder)
    rows = generated.table.to_pylist()
    assert len(rows) == len({row["seed"] for row in rows}) == 60
    seeds = {row["image_id"]: (row["prompt"], row["seed"] % 2**31) for row in rows}
    for place, name in enumerate(generated.pictures.ids):
        prompt, seed = seeds[name]
        assert generated.pictures.read(place) == png(paint({"prompt": prompt, "seed": seed}))


@pytest.mark.parametrize("sent", [["sampler"], ["seed", "seed"], "seed, size"])
def test_parameters_that_no_request_has_are_refused(sent):
    with pytest.raises(ConfigError, match="image_parameters"):
        config_of("served:http://127.0.0.1:1/v1#m", service={"image_parameters": sent})
