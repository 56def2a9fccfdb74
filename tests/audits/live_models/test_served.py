"""An audit of a served model: answers by group, kept replies, hosts, keys and plans."""

import re
from contextlib import suppress

import numpy as np
import polars as pl
import pytest
from PIL import Image

from audits.predictions.models import NAMES, numbers, painted
from chat_server import completion, serving
from equipoise import audits
from equipoise.core import ConfigError, DataError, ModelError
from equipoise.models import Service, load_model
from troubled_server import check_kills, vary_pictures

QUESTION = "Which colour is it?"


@pytest.fixture
def server():
    with serving() as running:
        running.reply = colour
        yield running


def colour(picture, _):
    """Say the colour that a picture has most of."""
    return 200, completion(NAMES[int(picture.reshape(-1, 3).sum(axis=0).argmax())]), {}


def config_of(server, folder, **service):
    painted(folder)
    return {
        "audit": "answers",
        "data": {"images": {"table": "images.csv", "id": "id", "root": "pictures",
                            "path": "file"}, "groups": ["group"]},
        "models": {"tiny": {"model": f"served:{server.url}#tiny", "question": QUESTION,
                            "service": service}},
        "extraction": {"part": 8},
        "resampling": {"replicates": 20, "permutations": 20},
    }  # fmt: skip


def run(config, folder):
    return audits.run(audits.parse_config(config), base=folder)


def states(result):
    rows = result.tables["answer_states"].to_pylist()
    return {(row["group"], row["state"]): row["count"] for row in rows}


def test_filtered_answers_are_refusals_of_their_group(server, tmp_path):
    config = config_of(server, tmp_path)
    groups = pl.read_csv(tmp_path / "images.csv")["group"].to_list()
    vary_pictures(tmp_path)
    server.reply = lambda picture, number: (
        (400, {"error": {"code": "content_filter"}}, {})
        if groups[int(picture[0, 0, 0])] == "a" and picture[0, 0, 0] % 3 == 0
        else (200, completion("blue"), {})
    )
    result = run(config, tmp_path)
    refused = sum(place % 3 == 0 for place, group in enumerate(groups) if group == "a")
    counts = states(result)
    assert counts["a", "refused"] == refused
    assert counts["b", "refused"] == 0
    assert "refused_rate" in {finding.metric for finding in result.findings}


def test_cut_and_failed_answers_are_failures_by_group(server, tmp_path, monkeypatch):
    monkeypatch.setattr("equipoise.models.served.time.sleep", lambda _: None)
    config = config_of(server, tmp_path, attempts=2)
    config["extraction"]["max_failures"] = 0.5
    vary_pictures(tmp_path)
    trouble = {
        0: (200, completion("blue and", reason="length"), {}),
        1: (500, {}, {}),
        3: (500, {}, {}),
    }
    server.reply = lambda picture, _: trouble.get(
        int(picture[0, 0, 0]), (200, completion("blue"), {})
    )
    result = run(config, tmp_path)
    (warning,) = result.manifest.warnings
    assert warning.startswith("tiny: 3 of 120 images failed")
    failures = result.tables["failures"].to_pylist()
    counts = {(row["group"], row["stage"]): row["n"] for row in failures}
    assert counts["a", "cut"] == 1
    assert counts["b", "request"] == 2


def test_too_many_cut_and_failed_answers_name_their_remedies(server, tmp_path, monkeypatch):
    monkeypatch.setattr("equipoise.models.served.time.sleep", lambda _: None)
    config = config_of(server, tmp_path, attempts=1)
    vary_pictures(tmp_path)
    cut, broken = (200, completion("blue and", reason="length"), {}), (500, {}, {})
    server.reply = lambda picture, _: cut if picture[0, 0, 0] < 4 else broken
    with pytest.raises(DataError) as caught:
        run(config, tmp_path)
    message = str(caught.value)
    assert "cut 4, request 4" in message
    assert "service.max_tokens" in message
    assert "check the server" in message
    assert "max_failures" in message
    assert "('root')" not in message
    server.reply = lambda *_: (200, completion("blue"), {})
    config["extraction"]["max_failures"] = 0.05
    failures = run(config, tmp_path).tables["failures"].to_pylist()
    assert {(row["stage"], row["n"]) for row in failures if row["group"] == ""} == {("cut", 4)}


def test_a_served_model_is_audited_as_a_table_of_its_answers(server, tmp_path):
    config = config_of(server, tmp_path)
    table = pl.read_csv(tmp_path / "images.csv")
    table.select("id", answer="shown").write_csv(tmp_path / "answers.csv")
    read = {**config, "models": {"tiny": {"table": "answers.csv", "answer": "answer", "id": "id"}}}
    assert numbers(run(config, tmp_path)) == numbers(run(read, tmp_path))


def test_a_plan_asks_nobody_and_says_who_will_see_the_pictures(server, tmp_path):
    config = config_of(server, tmp_path)
    config["models"]["tiny"]["model"] = "served:https://models.example/v1#tiny"
    config["models"]["tiny"]["service"] = {"allow_hosts": ["models.example"]}
    plan = audits.plan(audits.parse_config(config), base=tmp_path)
    assert any("120 pictures" in note and "models.example" in note for note in plan.notes)
    assert plan.runs[0]["to_do"] == 120
    assert server.headers == []


def test_pictures_stay_here_unless_a_host_is_named(server, tmp_path):
    config = config_of(server, tmp_path)
    config["models"]["tiny"]["model"] = "served:https://models.example/v1#tiny"
    with pytest.raises(ModelError, match=r"^models\.tiny\.model: .*allow_hosts"):
        run(config, tmp_path)


@pytest.mark.parametrize(("budget", "goals"), [(None, (20, 90)), (100.0, (60,))])
def test_killed_runs_ask_no_kept_answer_again_and_give_the_same(server, tmp_path, budget, goals):
    check_kills(server, tmp_path, goals=goals, budget=budget)


PRICES = {"tiny": {"input": 100.0, "output": 1000.0}}


def cost_of(requests):
    """Return the cost of requests of 10 tokens and a token of the answer."""
    return requests * (10 * 100.0 + 1000.0) / 1e6


def ask_about(server, folder, *pictures, **service):
    """Ask about pictures before an audit does, with the store of its configuration."""
    settings = Service(store=str(folder / "evidence"), **service)
    load_model(f"served:{server.url}#tiny", service=settings).answer(pictures, QUESTION)


def test_a_plan_estimates_requests_tokens_and_cost(server, tmp_path):
    config = config_of(server, tmp_path, prices=PRICES, currency="EUR", budget=1.0, max_tokens=4,
                       longest_side=56)  # fmt: skip
    plan = audits.plan(audits.parse_config(config), base=tmp_path)
    row, tokens = plan.runs[0], 120 * (5 + 4)
    assert (row["requests"], row["prompt_tokens"], row["completion_tokens"]) == (120, tokens, 480)
    assert row["cost"] == pytest.approx((tokens * 100 + 480 * 1000) / 1e6)
    assert any("EUR" in note and "28 x 28 pixels" in note for note in plan.notes)
    assert not (tmp_path / "evidence").exists()
    ask_about(server, tmp_path, np.zeros((4, 5, 3), np.uint8))
    row = audits.plan(audits.parse_config(config), base=tmp_path).runs[0]
    assert (row["prompt_tokens"], row["completion_tokens"]) == (1200, 120)
    assert row["cost"] == pytest.approx(cost_of(120))


def test_a_run_stops_below_its_budget_and_goes_on(server, tmp_path):
    budget = 0.1
    config = config_of(server, tmp_path, prices=PRICES, currency="EUR", max_tokens=4,
                       concurrency=4, budget=budget)  # fmt: skip
    config["data"]["min_group_size"] = 10
    vary_pictures(tmp_path)
    ask_about(server, tmp_path, np.zeros((9, 9, 3), np.uint8))
    steps = []
    first = audits.run(audits.parse_config(config), base=tmp_path,
                       progress=lambda *step: steps.append(step))  # fmt: skip
    sent = len(server.requests)
    spending = first.manifest.counts["prepared"]["spending"]["tiny"]
    assert (spending["all_runs"]["requests"], spending["this_run"]["requests"]) == (sent, sent - 1)
    assert spending["all_runs"]["cost"] == pytest.approx(cost_of(sent))
    assert budget - 0.01 < cost_of(sent) <= budget
    assert any("EUR spent" in step for step, *_ in steps)
    unasked = {row["group"]: (row["n"], row["of"]) for row in first.tables["failures"].to_pylist()}
    assert unasked[""] == (120 - (sent - 1), 120)
    assert unasked["a"][0] + unasked["b"][0] == unasked[""][0]
    assert any("budget of 0.1 EUR" in warning for warning in first.manifest.warnings)
    assert sum(states(first).values()) == sent - 1
    assert (
        audits.plan(audits.parse_config(config), base=tmp_path).runs[0]["to_do"] == (unasked[""][0])
    )
    assert numbers(run(config, tmp_path)) == numbers(first)
    assert any("--overwrite" in warning for warning in first.manifest.warnings)
    config["models"]["tiny"]["service"]["budget"] = 1.0
    whole = run(config, tmp_path)
    assert len(server.requests) == 121
    assert whole.manifest.counts["prepared"]["models"]["tiny"]["images"] == {
        "asked": 120, "failed": 0,
    }  # fmt: skip
    del config["models"]["tiny"]["service"]["budget"]
    assert numbers(whole) == numbers(run(config | {"extraction": {"store": "other"}}, tmp_path))


def test_a_budget_for_no_answer_is_an_error(server, tmp_path):
    config = config_of(server, tmp_path, prices=PRICES, budget=0.01)
    with pytest.raises(ModelError, match=r"service\.budget"):
        run(config, tmp_path)
    assert server.requests == []
    notes = " ".join(audits.plan(audits.parse_config(config), base=tmp_path).notes)
    (least,) = re.findall(r"the least budget is about (\d+\.\d+)", notes)
    config["models"]["tiny"]["service"]["budget"] = float(least)
    with suppress(DataError):  # too few answers to compare
        run(config, tmp_path)
    assert server.requests


def test_a_budget_that_leaves_too_little_to_compare_is_named(server, tmp_path):
    config = config_of(server, tmp_path, prices=PRICES, max_tokens=4, budget=0.1)
    vary_pictures(tmp_path)
    ask_about(server, tmp_path, np.zeros((9, 9, 3), np.uint8))
    with pytest.raises(DataError, match=r"service\.budget.* fewer than two groups"):
        run(config, tmp_path)


def test_a_budget_without_prices_of_the_model_is_refused(server, tmp_path):
    config = config_of(server, tmp_path, prices={"other": {"input": 1.0}}, budget=1.0)
    with pytest.raises(ConfigError, match=r"service\.prices"):
        audits.parse_config(config)


def test_the_expected_spend_is_right_after_the_first_tenth(server, tmp_path):
    config = config_of(server, tmp_path, prices=PRICES, currency="EUR", concurrency=1)
    config["extraction"]["part"] = 12
    vary_pictures(tmp_path)

    def reply(picture, number):
        _, body, headers = colour(picture, number)
        body["usage"] = {"prompt_tokens": 100 + int(picture[0, 0, 0]) % 7, "completion_tokens": 2}
        return 200, body, headers

    server.reply = reply
    expected = []

    def progress(step, done, total):
        if "expected" in step and total and done * 10 >= total:
            expected.append(float(step.rpartition(", ")[2].split()[0]))

    result = audits.run(audits.parse_config(config), base=tmp_path, progress=progress)
    cost = result.manifest.counts["prepared"]["spending"]["tiny"]["all_runs"]["cost"]
    assert expected[0] == pytest.approx(cost, rel=0.05)


def test_a_budget_without_a_model_names_the_form(server, tmp_path):
    config = config_of(server, tmp_path, prices=PRICES, budget=1.0)
    config["models"]["tiny"]["model"] = f"served:{server.url}#"
    with pytest.raises(ConfigError, match="URL#MODEL"):
        audits.parse_config(config)


def sized(server, folder, **service):
    """Make pictures of 100 to 1,500 pixels, sorted, and a server whose prompts grow with them."""
    config = config_of(server, folder, prices=PRICES, currency="EUR", longest_side=1500,
                       max_tokens=4, **service)  # fmt: skip
    config["extraction"] = {"part": 8}
    table = pl.read_csv(folder / "images.csv")[:80]
    table.write_csv(folder / "images.csv")
    for place, path in enumerate(table["file"]):
        size = 100 + 1400 * place // 79, 300 - place
        Image.new("RGB", size, (place, 0, 255)).save(folder / "pictures" / path)

    def reply(picture, _):
        height, width, _ = picture.shape
        body = completion("blue")
        body["usage"] = {"prompt_tokens": 30 + width * height // 750, "completion_tokens": 3}
        return 200, body, {}

    server.reply = reply
    return config


def true_cost(server):
    """Return the cost of the requests that a server has got."""
    sizes = [request["picture"].shape for request in server.requests]
    return sum((30 + w * h // 750) * 100.0 + 3 * 1000.0 for h, w, _ in sizes) / 1e6


@pytest.mark.parametrize("budget", [None, 100.0])
def test_the_expected_spend_is_right_where_pictures_vary(server, tmp_path, budget):
    config = sized(server, tmp_path, budget=budget, concurrency=1)
    expected = []

    def progress(step, done, total):
        if " expected" in step and total and done * 10 >= total:
            expected.append(float(step.rpartition(", ")[2].split()[0]))

    audits.run(audits.parse_config(config), base=tmp_path, progress=progress)
    assert len(server.requests) == 80
    assert expected
    assert expected == pytest.approx([true_cost(server)] * len(expected), rel=0.05)


def stopping_after(n, server):
    """Make a server refuse the key from the n-th request on: a run stops there, as by a kill."""
    reply = server.reply
    server.reply = lambda picture, number: (
        reply(picture, number) if number < n else (401, {"error": {"message": "no"}}, {})
    )
    return reply


@pytest.mark.parametrize("budget", [None, 100.0])
def test_a_plan_after_a_tenth_of_the_answers_is_right(server, tmp_path, budget):
    config = audits.parse_config(sized(server, tmp_path, budget=budget, concurrency=1))
    reply = stopping_after(12, server)
    with pytest.raises(ModelError):
        audits.run(config, base=tmp_path)
    del server.requests[12:]
    spent, row = true_cost(server), audits.plan(config, base=tmp_path).runs[0]
    assert (row["in_store"], row["to_do"], row["requests"]) == (12, 68, 68)
    server.reply = reply
    audits.run(config, base=tmp_path)
    assert len(server.requests) == 80
    assert spent + row["cost"] == pytest.approx(true_cost(server), rel=0.05)


def test_a_budget_leaves_as_much_out_of_each_group_of_a_sorted_table(server, tmp_path):
    config = config_of(server, tmp_path, prices=PRICES, max_tokens=4, budget=0.15)
    config |= {"extraction": {"part": 60}}
    config["data"]["min_group_size"] = 5
    vary_pictures(tmp_path)
    table = pl.read_csv(tmp_path / "images.csv")
    groups = ["a"] * 60 + ["b"] * 60
    table.with_columns(group=pl.Series(groups)).write_csv(tmp_path / "images.csv")
    ask_about(server, tmp_path, np.zeros((4, 5, 3), np.uint8))
    first = run(config, tmp_path)
    places = [int(request["picture"][0, 0, 0]) for request in server.requests[1:]]
    asked = [sum(groups[place] == group for place in places) for group in "ab"]
    assert 60 < sum(asked) < 80
    assert abs(asked[0] - asked[1]) <= 10
    assert numbers(run(config, tmp_path)) == numbers(first)
    assert len(server.requests) == 1 + len(places)


def test_parameters_without_effect_are_noted_once(server, tmp_path):
    config = config_of(server, tmp_path, seed=3)
    server.reply = lambda picture, number: (200, colour(picture, number)[1] | {"seed": 9}, {})
    for _ in range(2):
        notes = run(config, tmp_path).manifest.notes
        assert sum("ignores parameters of requests: seed" in note for note in notes) == 1
