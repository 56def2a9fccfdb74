"""Audits of served dual encoders: as of the same model here, plans, hosts, failures."""

import numpy as np
import polars as pl
import pytest
from PIL import Image

from audits.live_models.fakes import Encoder
from audits.live_models.worlds import associations, retrieval
from equipoise import audits
from equipoise.core import ConfigError, ModelError
from interface_servers import VectorServer, serving

AWAY = {"model": "served:https://vectors.example/v1#m"}


@pytest.fixture
def server():
    with serving(VectorServer(Encoder())) as running:
        yield running


def similarity(**model):
    values = retrieval(**model) | {"audit": "similarity"}
    values.pop("ranking")
    return values


def findings(values, world):
    return [*map(repr, audits.run(audits.parse_config(values), base=world).findings)]


def named(server):
    return {"model": f"served:{server.url}#tiny"}


@pytest.mark.parametrize("kind", [retrieval, similarity, associations])
def test_a_served_model_is_audited_as_the_same_model_here(kind, server, world):
    served = findings(kind(**named(server)), world)
    assert served == findings(kind(model=Encoder()), world)
    assert {"input", "messages"} <= {key for body in server.requests for key in body}


def test_a_picture_that_fails_each_time_is_a_failure_and_others_count(server, world, monkeypatch):
    monkeypatch.setattr("equipoise.models.served.time.sleep", lambda _: None)
    path = min((world / "pictures").glob("*.png"))
    failing = np.asarray(Image.open(path))
    server.trouble_of = lambda body, _: (
        (500, {"error": {"message": "broken"}}, {})
        if "messages" in body and np.array_equal(server.pictures(body)[0], failing) else None
    )  # fmt: skip
    findings(retrieval(**named(server), service={"attempts": 2}), world)
    failures = pl.read_parquet(world / "evidence" / "embeddings" / "*" / "failures.parquet")
    assert failures["image_id"].to_list() == [path.stem]
    assert failures["stage"].to_list() == ["model"]
    assert "broken" in failures["reason"][0]


def test_a_server_that_takes_no_pictures_stops_the_run_by_the_key_of_the_model(server, world):
    server.form = ""
    with pytest.raises(ModelError, match=r"^models\.m\.model: .*takes no pictures"):
        audits.run(audits.parse_config(retrieval(**named(server))), base=world)


def test_a_plan_asks_nobody_and_says_what_would_be_sent(world):
    values = retrieval(**AWAY, service={"allow_hosts": ["vectors.example"]})
    plan = audits.plan(audits.parse_config(values), base=world)
    assert any("96 pictures" in note and "vectors.example" in note for note in plan.notes)
    assert any("4 texts" in note and "vectors.example" in note for note in plan.notes)
    assert [run["to_do"] for run in plan.runs] == [96, None]


def test_pictures_stay_here_unless_a_host_is_named(world):
    with pytest.raises(ModelError, match=r"^models\.m\.model: .*allow_hosts"):
        audits.run(audits.parse_config(retrieval(**AWAY)), base=world)


def test_predictions_of_a_served_model_need_a_vocabulary_or_a_question(server, world):
    images = {"table": "images.csv", "id": "image_id", "path": "file", "root": "pictures"}
    values = {
        "audit": "predictions",
        "data": {"images": images, "target": "subject", "groups": ["frame"]},
        "models": {"m": named(server)},
    }
    with pytest.raises(ConfigError, match="vocabulary"):
        audits.run(audits.parse_config(values), base=world)
