"""Models behind an interface: replies, refusals, trouble of servers, hosts and keys."""

import numpy as np
import pytest

from chat_server import completion, serving
from equipoise.core import ModelError, RunError
from equipoise.models import Answerer, NoAnswer, Service, load_model
from equipoise.models.journal import ignored_parameters
from equipoise.models.protocols import ServiceError

KEY = "sk-a-key-that-nobody-may-see"
QUESTION = "Is a person in the picture?"


@pytest.fixture
def server():
    with serving() as running:
        yield running


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr("equipoise.models.served.time.sleep", lambda _: None)


def pictures(n=3, size=(6, 4)):
    return [np.full((*size, 3), shade, np.uint8) for shade in range(n)]


def model_of(server, **settings):
    return load_model(f"served:{server.url}#tiny", service=Service(**settings))


def test_answers_are_those_of_the_pictures_in_order(server):
    server.reply = lambda picture, _: (200, completion(f" shade {picture[0, 0, 0]} "), {})
    model = model_of(server)
    assert isinstance(model, Answerer)
    assert model.answer(pictures(20), QUESTION) == [f"shade {shade}" for shade in range(20)]
    first = server.requests[0]
    assert (first["model"], first["max_tokens"], first["temperature"]) == ("tiny", 64, 0.0)
    assert first["messages"][0]["content"][1] == {"type": "text", "text": QUESTION}


def test_log_probabilities_of_first_tokens_come_with_the_answer(server, tmp_path):
    odd = {"token": "\ud800", "logprob": -9.0}
    tokens = [{"token": "A", "top_logprobs": [{"token": "A", "logprob": -0.1}, odd,
                                              {"token": "B", "logprob": -2.5}]}]  # fmt: skip
    body = completion("A")
    body["choices"][0]["logprobs"] = {"content": tokens}
    server.reply = lambda *_: (200, body, {})
    model = model_of(server, store=str(tmp_path))
    for _ in range(2):
        (answer,) = model.answer_with_probabilities(pictures(1), QUESTION, alternatives=5)
        assert answer == ("A", ({"A": -0.1, "?": -9.0, "B": -2.5},))
    assert len(server.requests) == 1
    assert (server.requests[0]["logprobs"], server.requests[0]["top_logprobs"]) == (True, 5)
    model.answer(pictures(1), QUESTION)
    assert "logprobs" not in server.requests[1]


@pytest.mark.parametrize(
    ("reported", "ignored"),
    [
        ({}, ()),
        ({"seed": 0, "temperature": 0}, ()),
        ({"seed": 1}, ("seed",)),
        ({"parameters": {"temperature": 0.7, "max_tokens": 64}}, ("temperature",)),
        ({"usage": {"prompt_tokens": 9, "completion_tokens": 65}}, ("max_tokens",)),
        ({"generation_settings": {"seed": None, "temperature": "0"}}, ()),
    ],
)
def test_parameters_without_effect_are_recognised(server, tmp_path, reported, ignored):
    server.reply = lambda *_: (200, completion() | reported, {})
    model = model_of(server, store=str(tmp_path))
    model.answer(pictures(2), QUESTION)
    with model.opened_database() as database:
        place = database, model.address.account, model.service.parameters
        assert (*ignored_parameters(*place),) == ignored


def test_log_probabilities_that_a_server_leaves_out_are_noted(server, tmp_path):
    model = model_of(server, store=str(tmp_path))
    model.answer_with_probabilities(pictures(1), QUESTION)
    with model.opened_database() as database:
        place = database, model.address.account, model.service.parameters
        assert ignored_parameters(*place) == ["logprobs"]


@pytest.mark.parametrize(
    "log_probabilities",
    [None, 3, {}, {"content": None}, {"content": []}, {"content": ["A"]},
     {"content": [{"token": "A", "logprob": -0.1, "top_logprobs": []}]},
     {"content": [{"top_logprobs": [{"token": 3, "logprob": -1}, {"token": "A"}, 4]}]},
     {"content": [{"top_logprobs": [{"token": "A", "logprob": float("nan")}]}]}],
)  # fmt: skip
def test_answers_without_log_probabilities_say_so(server, log_probabilities):
    body = completion("A")
    body["choices"][0]["logprobs"] = log_probabilities
    server.reply = lambda *_: (200, body, {})
    assert model_of(server).answer_with_probabilities(pictures(1), QUESTION) == [("A", None)]


def test_large_pictures_are_shrunk(server):
    model_of(server, longest_side=8).answer(pictures(1, (40, 20)), QUESTION)
    assert server.requests[0]["picture"].shape == (8, 4, 3)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, completion("", reason="content_filter")),
        (200, completion(None, refusal="I can't help with that.")),
        (200, {"choices": [], "error": {"code": "content_filter"}}),
        (400, {"error": {"code": "content_filter", "message": "filtered"}}),
        (400, {"error": {"innererror": {"code": "ResponsibleAIPolicyViolation"}}}),
    ],
)
def test_filters_of_all_forms_are_refusals(server, status, body):
    server.reply = lambda *_: (status, body, {})
    (answer,) = model_of(server).answer(pictures(1), QUESTION)
    assert answer.startswith("Refused to answer")
    assert len(server.requests) == 1


def test_a_server_that_refuses_log_probabilities_is_named_with_the_key(server):
    server.reply = lambda *_: (400, {"error": {"message": "unknown parameter"}}, {})
    with pytest.raises(ServiceError, match="letters: false"):
        model_of(server).answer_with_probabilities(pictures(1), QUESTION)
    with pytest.raises(ServiceError) as error:
        model_of(server).answer(pictures(1), QUESTION)
    assert "letters" not in str(error.value)


def test_cut_answers_are_none(server):
    server.reply = lambda *_: (200, completion("The person", reason="length"), {})
    (answer,) = model_of(server).answer(pictures(1), QUESTION)
    assert isinstance(answer, NoAnswer)
    assert answer.stage == "cut"


@pytest.mark.parametrize(
    "trouble",
    [
        (429, {"error": {"message": "slow down"}}, {"Retry-After": "1"}),
        (500, b"oops", {}),
        (503, {}, {}),
        (200, b"{not json", {}),
        (200, {"choices": [{"message": 3}]}, {}),
        (200, b"{}", {"Content-Length": "900"}),
        None,
    ],
)
def test_requests_are_sent_again_after_trouble(server, trouble):
    server.reply = lambda _, number: trouble if number < 2 else (200, completion("no"), {})
    assert model_of(server, timeout=0.5).answer(pictures(1), QUESTION) == ["no"]
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("after", "low", "high"),
    [("7", 7, 7), ("900", 60, 60), ("Mon, 01 Jan 2091 00:00:00 GMT", 60, 60),
     ("Mon, 01 Jan 2001 00:00:00 GMT", 0, 0), ("soon", 0, 0), ("-3", 0, 0), ("\u00b2", 0, 0)],
)  # fmt: skip
def test_a_server_names_the_wait_in_seconds_or_by_a_date(server, monkeypatch, after, low, high):
    waits = []
    monkeypatch.setattr("equipoise.models.served.time.sleep", waits.append)
    server.reply = lambda _, number: (
        (200, completion(), {}) if number else (429, {}, {"Retry-After": after})
    )
    model_of(server).answer(pictures(1), QUESTION)
    assert low <= max(waits) <= max(high, 0.5)


def test_a_picture_that_fails_each_time_stands_alone(server):
    server.reply = lambda picture, _: (
        (500, {"error": {"message": "broken"}}, {}) if picture[0, 0, 0] == 1
        else (200, completion(), {})
    )  # fmt: skip
    first, failed, last = model_of(server, attempts=3).answer(pictures(3), QUESTION)
    assert (first, last) == ("yes", "yes")
    assert failed.stage == "request"
    assert "broken" in failed.reason
    assert len(server.requests) == 5


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(301, "redirects aren't followed: name the address"), (401, "service.key"),
     (403, "service.key"), (404, "check the URL"), (422, "wrong key")],
)  # fmt: skip
def test_what_no_request_can_mend_stops_at_once(server, status, remedy):
    server.reply = lambda *_: (
        status,
        {"error": {"message": f"wrong key {KEY}"}},
        {"Location": "/"},
    )
    with pytest.raises(ServiceError) as caught:
        model_of(server, concurrency=1).answer(pictures(9), QUESTION)
    assert len(server.requests) == 1
    assert str(status) in str(caught.value)
    assert remedy in str(caught.value)


def test_fewer_requests_at_once_after_trouble(server):
    server.reply = lambda _, number: (429, {}, {}) if number < 12 else (200, completion(), {})
    model = model_of(server, concurrency=8, attempts=9)
    model.answer(pictures(4), QUESTION)
    assert model.pace.allowed < 8
    assert server.most_under_way <= 8


def test_kept_answers_are_never_asked_again(server, tmp_path):
    server.reply = lambda picture, _: (200, completion(str(picture[0, 0, 0])), {})
    first = model_of(server, store=str(tmp_path)).answer(pictures(3), QUESTION)
    again = model_of(server, store=str(tmp_path)).answer(pictures(4), QUESTION)
    assert (first, again) == (["0", "1", "2"], ["0", "1", "2", "3"])
    assert len(server.requests) == 4
    model_of(server, store=str(tmp_path), max_tokens=9).answer(pictures(1), QUESTION)
    model_of(server, store=str(tmp_path)).answer(pictures(1), "Another question?")
    assert len(server.requests) == 6


def test_failed_requests_are_asked_again(server, tmp_path):
    server.reply = lambda *_: (500, {}, {})
    model_of(server, store=str(tmp_path), attempts=1).answer(pictures(1), QUESTION)
    server.reply = lambda *_: (200, completion("no"), {})
    assert model_of(server, store=str(tmp_path)).answer(pictures(1), QUESTION) == ["no"]


def test_another_model_behind_the_name_is_refused(server):
    server.reply = lambda picture, _: (200, completion(model=f"m{picture[0, 0, 0]}"), {})
    with pytest.raises(ServiceError, match="several models: m0, m1"):
        model_of(server).answer(pictures(2), QUESTION)


def test_another_model_than_that_of_kept_answers_is_refused(server, tmp_path):
    model_of(server, store=str(tmp_path)).answer(pictures(1), QUESTION)
    server.reply = lambda *_: (200, completion(model="next-2027"), {})
    with pytest.raises(ServiceError, match="next-2027, tiny-2026"):
        model_of(server, store=str(tmp_path)).answer(pictures(2), QUESTION)


def test_the_key_is_sent_and_stands_nowhere(server, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", KEY)
    server.reply = lambda *_: (401, {"error": {"message": f"wrong key {KEY}"}}, {})
    model = model_of(server, key="SECRET", store=str(tmp_path))
    with pytest.raises(ServiceError) as caught:
        model.answer(pictures(1), QUESTION)
    assert server.headers[-1]["Authorization"] == f"Bearer {KEY}"
    shown = [repr(model), repr(model.info), str(caught.value), model.info.key]
    shown += [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*")]
    assert not any(KEY in text for text in shown)


@pytest.mark.parametrize(
    ("name", "settings", "problem"),
    [
        ("served:http://127.0.0.1:1/v1", {}, "expected the URL"),
        ("served:ftp://127.0.0.1/v1#m", {}, "expected the URL"),
        ("served:http://me:secret@127.0.0.1/v1#m", {}, "service.key"),
        ("served:https://models.example/v1#m", {}, "allow_hosts"),
        ("served:http://127.0.0.1:1/v1#m", {"key": "NO_SUCH_KEY"}, "NO_SUCH_KEY"),
        ("served:http://127.0.0.1:1/v1#m", {}, "no answer of the server"),
        *((f"served:{scheme}://models.example/v1#m", {"key": "HOME", "allow_hosts":
           ("Models.Example",)}, "https") for scheme in ("http", "HTTP", "Http")),
        *((f"served:{url}#m", {}, "expected the URL") for url in (
            "http://127.0.0.1:abc/v1", "http://[::1/v1", "http://a..b/v1", " http://127.0.0.1/v1",
            "http://127.0.0.1/v1\n", "http://\u2100.com/v1", "http://127.0.0.1:99999/v1")),
    ],
)  # fmt: skip
def test_names_hosts_and_keys_that_are_refused(name, settings, problem):
    with pytest.raises(ModelError, match=problem) as caught:
        load_model(name, service=Service(**settings))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "  ", "sk-\u00e4", "sk-a\nb", "two words"])
def test_keys_that_no_header_holds_are_refused_by_the_name_of_the_variable(
    server, monkeypatch, key
):
    monkeypatch.setenv("SECRET", key)
    with pytest.raises(ModelError, match="SECRET") as caught:
        model_of(server, key="SECRET")
    assert not key.strip() or key not in str(caught.value)


def test_a_key_may_end_in_a_line_break(server, monkeypatch):
    monkeypatch.setenv("SECRET", f"{KEY}\n")
    model_of(server, key="SECRET").answer(pictures(1), QUESTION)
    assert server.headers[-1]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("before", [0, 270, 290])
def test_no_part_of_a_key_that_a_server_repeats_is_shown(server, tmp_path, monkeypatch, before):
    monkeypatch.setenv("SECRET", KEY)
    replies = [
        (401, {"error": {"message": f"{'x' * before} {KEY}"}}, {}),
        (200, completion(f"{'x' * before} {KEY}"), {}),
        (200, completion(f"{KEY}", reason="length"), {}),
        (200, completion(None, refusal=f"no {KEY}"), {}),
    ]
    shown = []
    for reply in replies:
        server.reply = lambda *_, reply=reply: reply
        model = model_of(server, key="SECRET", store=str(tmp_path), seed=len(shown))
        try:
            shown.append(repr(model.answer(pictures(1), QUESTION)))
        except ServiceError as error:
            shown.append(str(error))
    shown += [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*")]
    assert not any(KEY[:8] in text for text in shown)


def test_an_answer_has_an_end_in_time_and_in_size(server):
    server.drip = b"x"
    first, *_ = model_of(server, timeout=0.3, attempts=1).answer(pictures(1), QUESTION)
    server.drip = None
    server.reply = lambda *_: (200, b'"' + b"x" * (5 << 20) + b'"', {})
    second, *_ = model_of(server, attempts=1).answer(pictures(1), QUESTION)
    assert (first.stage, second.stage) == ("request", "request")


@pytest.mark.parametrize("tokens", ["ten", [1], 1e300, -1, None, 2**70, True])
def test_odd_counts_and_halves_of_characters_spoil_no_answer(server, tmp_path, tokens):
    body = {**completion("a \ud800 b"), "usage": {"prompt_tokens": tokens}, "model": None}
    server.reply = lambda *_: (200, body, {})
    assert model_of(server, store=str(tmp_path)).answer(pictures(1), QUESTION) == ["a ? b"]
    assert len(server.requests) == 1


def test_parts_of_an_answer_without_text_are_left_out(server):
    parts = [{"text": "blue"}, {"type": "text", "text": None}, "odd"]
    server.reply = lambda *_: (200, completion(parts), {})
    assert model_of(server).answer(pictures(1), QUESTION) == ["blue"]


def test_a_list_of_models_is_asked_for_until_the_server_is_ready(server):
    before = model_of(server).info.key
    server.trouble = [(503, {}, {}), (429, {}, {})]
    assert model_of(server).info.key == before
    server.trouble = [(404, {}, {})]
    assert model_of(server).reported == {}
    server.trouble = [(200, b"<html>", {"Content-Type": "text/html"})]
    with pytest.raises(ServiceError, match="text/html"):
        model_of(server)


def test_a_store_that_cannot_be_used_is_no_fault_of_a_picture(server, tmp_path):
    (tmp_path / "requests.sqlite").write_bytes(b"no data base at all, " * 999)
    with pytest.raises(RunError, match=r"requests\.sqlite"):
        model_of(server, store=str(tmp_path)).answer(pictures(1), QUESTION)
    assert server.requests == []


def test_a_model_that_the_server_lacks_is_refused(server):
    with pytest.raises(ModelError, match="other, tiny"):
        load_model(f"served:{server.url}#huge")


def test_what_differs_from_call_to_call_is_no_part_of_the_model(server):
    before = model_of(server).info.key
    server.models[0]["created"] = 2
    assert model_of(server).info.key == before
    server.models[0]["root"] = "other-weights"
    assert model_of(server).info.key != before


def test_each_picture_may_have_its_own_question(server, tmp_path):
    server.reply = lambda picture, number: (200, completion(str(picture[0, 0, 0])), {})
    model = model_of(server, store=str(tmp_path))
    questions = [f"Question {place}?" for place in range(6)]
    for _ in range(2):
        answers = model.answer_each(pictures(6), questions, probabilities=True)
        assert [answer.text for answer in answers] == [*"012345"]
    sent = {
        body["messages"][0]["content"][1]["text"]: str(server.of(body)[0, 0, 0])
        for body in server.requests
    }
    assert len(server.requests) == 6
    assert sent == {question: str(place) for place, question in enumerate(questions)}
    assert all(body["logprobs"] for body in server.requests)
    model.answer_each(pictures(1), questions[:1], probabilities=False)
    assert "logprobs" not in server.requests[-1]
