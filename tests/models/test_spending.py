"""Tokens and money of served models: prices, estimates, reservations and budgets."""

import shutil
import threading
from contextlib import closing, suppress
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from chat_server import completion, serving
from equipoise.core import InputError
from equipoise.models import Sampling, Service, load_generator, load_model
from equipoise.models.journal import FILE, Database
from equipoise.models.protocols import ServiceError
from equipoise.models.spending import (
    BudgetError,
    Prices,
    Spending,
    Spent,
    Usage,
    estimate_tokens,
    estimate_usage,
)
from interface_servers import ImageServer, VectorServer

PRICES = Prices(input=1.0, output=10.0, image=0.5, request=0.25)
REQUEST = Usage(1, 1, 100, 20)


@pytest.fixture
def server():
    with serving() as running:
        yield running


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr("equipoise.models.served.time.sleep", lambda _: None)


@pytest.fixture
def database(tmp_path):
    with closing(Database(tmp_path)) as opened:
        yield opened


def pictures(n):
    return [np.full((6, 4, 3), shade, np.uint8) for shade in range(n)]


def model_of(server, **settings):
    return load_model(f"served:{server.url}#tiny", service=Service(**settings))


def spent_in(folder, server):
    with closing(Database(folder, must_exist=True)) as opened:
        return Spending(opened, f"{server.url}#tiny").spent()


def settle(spending, usage, basis="counted", estimate=REQUEST):
    with spending.sending(estimate) as sending:
        sending.settle(usage, basis)


def test_a_cost_is_of_tokens_pictures_and_requests():
    assert PRICES.cost(Usage(2, 3, 1_000_000, 500_000)) == 1.0 + 5.0 + 1.5 + 0.5


@pytest.mark.parametrize(
    ("text", "sides", "tokens"),
    [("", (), 0), ("abcd", (), 1), ("abcde", (), 2), ("", (28,), 1), ("", (29,), 4),
     ("abcd", (1024, 56), 1 + 37**2 + 4)],
)  # fmt: skip
def test_sizes_are_estimated_by_characters_and_longest_sides(text, sides, tokens):
    assert estimate_usage(text, sides, 64) == Usage(1, len(sides), tokens, 64)


def test_usage_is_kept_by_how_it_is_known(database):
    spending = Spending(database, "a")
    settle(spending, Usage(1, 1, 90, 3))
    settle(spending, Usage(1, 1, 110, 5))
    settle(spending, Usage(1, 1, 100, 2), "estimated")
    with spending.sending(REQUEST) as sending:
        sending.forget()
    with pytest.raises(RuntimeError), spending.sending(REQUEST):
        raise RuntimeError
    spent = Spending(database, "a").spent()
    assert (spent.counted, spent.estimated) == (Usage(2, 2, 200, 8), Usage(1, 1, 100, 2))
    assert spent.unsettled == (REQUEST,)
    assert spent.total == Usage(4, 4, 300 + 138, 10 + 20)
    assert spent.mean_times(10) == Usage(10, 10, 1000, 40)
    assert Spending(database, "other").spent().total == Usage()


def trend_of(database, *requests):
    """Return the trend of requests of some sizes and tokens of prompts."""
    spending = Spending(database, "a")
    for size, tokens in requests:
        with spending.sending(REQUEST, size) as sending:
            sending.settle(Usage(1, 1, tokens, 3), "counted")
    return spending.trend()


@pytest.mark.parametrize(
    ("requests", "tokens"),
    [
        ([(10, 70), (20, 90), (30, 110)], 2 * 50 + 2 * 150),
        ([(10, 50), (10, 50)], 5 * 150),
        ([(10, 70), (20, 60), (30, 50)], 2 * 60),
        ([(0, 7)], 2 * 7),
    ],
)
def test_prompts_are_expected_on_a_line_over_sizes(database, requests, tokens):
    assert trend_of(database, *requests).usage(2, 150) == Usage(2, 2, tokens, 6)


@pytest.mark.parametrize("basis", ["counted", "estimated"])
def test_free_requests_lower_what_later_requests_are_expected_to_take(database, basis):
    spending = Spending(database, "a")
    for _ in range(3):
        settle(spending, Usage(1, 1, 80, 4), basis)
    before = spending.spent().total
    settle(spending, Usage(), "free")
    spent = spending.spent()
    assert (spent.total, spent.n_free, spent.unsettled) == (before, 1, ())
    assert spent.most(REQUEST) == Spent(spent.counted, spent.estimated, (), *(
        (100, 80, 4) if basis == "counted" else ()
    )).most(REQUEST)  # fmt: skip
    assert spent.mean_times(8) == Usage(8, 6, 480, 24)
    assert spending.trend().usage(8, 8 * 100) == Usage(8, 8, 480, 24)


def test_a_request_that_a_filter_refuses_is_free(server, tmp_path):
    server.reply = lambda *_: (400, {"error": {"code": "content_filter"}}, {})
    model_of(server, store=str(tmp_path)).answer(pictures(1), "?")
    spent = spent_in(tmp_path, server)
    assert (spent.n_free, spent.total, spent.is_known) == (1, Usage(), False)


@pytest.mark.parametrize(
    ("cost", "least", "most"),
    [
        (0.006, 0.006, 0.006), (0.00604, 0.0061, 0.006), (0.1 + 0.2, 0.3, 0.3), (1.234, 1.24, 1.23),
        (0.99999, 1.0, 0.9999),
    ],
)  # fmt: skip
def test_amounts_are_rounded_to_the_side_on_which_they_are_enough(cost, least, most):
    service = Service()
    assert (float(service.at_least(cost)), float(service.at_most(cost))) == (least, most)


def killed_in_a_change(database, folder, to):
    """Copy a store in the middle of a change, as a kill leaves it."""
    with suppress(InterruptedError), database.changing() as cursor:
        # Pages reach the file before the change ends.
        cursor.execute("PRAGMA cache_size = 1")
        cursor.executemany(
            "INSERT INTO names VALUES ('a', ?)", [(f"{n:0500}",) for n in range(500)]
        )
        shutil.copytree(folder, to)
        raise InterruptedError
    assert (to / f"{FILE}-journal").stat().st_size


def test_a_change_that_a_kill_ended_is_taken_back_by_reading(database, tmp_path):
    settle(Spending(database, "a"), Usage(1, 1, 90, 3))
    copy = tmp_path / "copy"
    killed_in_a_change(database, tmp_path, copy)
    with closing(Database(copy, must_exist=True)) as opened:
        assert Spending(opened, "a").spent().total == Usage(1, 1, 90, 3)
        assert opened.rows("SELECT * FROM names") == []


def test_a_store_whose_tables_a_kill_left_out_is_empty(tmp_path):
    (tmp_path / FILE).touch()
    with closing(Database(tmp_path, must_exist=True)) as opened:
        assert Spending(opened, "a").spent() == Spent()


def test_a_store_that_cannot_be_written_is_read(database, tmp_path):
    settle(Spending(database, "a"), Usage(1, 1, 90, 3))
    (tmp_path / FILE).chmod(0o444)
    tmp_path.chmod(0o555)
    with closing(Database(tmp_path, must_exist=True)) as opened:
        assert Spending(opened, "a").spent().total == Usage(1, 1, 90, 3)
    tmp_path.chmod(0o755)


@pytest.mark.parametrize(
    ("replies", "size", "most"),
    [
        ([], 100, 40_000),
        ([], 20_000, 80_000),
        ([("estimated", 100)], 300, 300),
        ([("counted", 400)], 50, 500),
        ([("counted", 400)], 200, 1600),
    ],
)
def test_the_most_of_a_request_is_tightened_by_replies(database, replies, size, most):
    spending = Spending(database, "a")
    for basis, tokens in replies:
        settle(spending, Usage(1, 1, tokens, 3), basis)
    assert spending.spent().most(Usage(1, 1, size, 20)) == Usage(1, 1, most, 20)


def test_no_sum_of_requests_in_flight_can_pass_the_budget(database):
    prices, budget = Prices(input=1000.0, output=1000.0), 10.0
    settle(Spending(database, "a"), Usage(1, 1, 100, 20))
    spending = Spending(database, "a", prices, budget)
    in_flight, highest, refused = [0.12], [0.0], []
    lock, ready = threading.Lock(), threading.Barrier(8)

    def send():
        ready.wait()
        for _ in range(40):
            try:
                with spending.sending(REQUEST) as sending:
                    with lock:
                        in_flight[0] += 0.145
                        highest[0] = max(highest[0], in_flight[0])
                    sending.settle(Usage(1, 1, 100, 20), "counted")
                    with lock:
                        in_flight[0] -= 0.145 - 0.12
            except BudgetError:
                refused.append(1)

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cost = prices.cost(spending.spent().total)
    assert refused
    assert budget - 0.145 < cost <= budget
    assert highest[0] <= budget


def test_the_first_request_is_sent_alone(server):
    server.reply = lambda *_: (200, completion(), {})
    model = model_of(server, prices=Prices(input=1.0), budget=10.0)
    both = [0]
    reply = server.reply

    def count(picture, number):
        both[0] = max(both[0], server.under_way if number == 0 else 0)
        return reply(picture, number)

    server.reply = count
    model.answer(pictures(6), "?")
    assert both[0] == 1


def test_answers_stop_below_the_budget_and_go_on_above_it(server, tmp_path):
    settings = {"prices": Prices(input=1000.0), "store": str(tmp_path), "concurrency": 2}
    answers = model_of(server, budget=40.1, **settings).answer(pictures(20), "Which?")
    stages = [answer if isinstance(answer, str) else answer.stage for answer in answers]
    assert len(server.requests) == stages.count("yes") == 20
    server.requests.clear()
    spent = spent_in(tmp_path, server)
    assert spent.counted == Usage(20, 20, 200, 20)
    shades = [picture + 100 for picture in pictures(20)]
    answers = model_of(server, budget=0.25, **settings).answer(shades, "Which?")
    assert {answer if isinstance(answer, str) else answer.stage for answer in answers} == {
        "yes", "budget"
    }  # fmt: skip
    assert 0.23 < spent_in(tmp_path, server).total.prompt_tokens / 1000 <= 0.25
    again = model_of(server, budget=1.0, **settings).answer(shades, "Which?")
    assert again == ["yes"] * 20
    assert len(server.requests) == 20


def test_a_budget_that_ends_stops_images_and_vectors(tmp_path):
    service = Service(store=str(tmp_path), prices=Prices(image=1.0, request=1.0), budget=5.5)
    with serving(ImageServer()) as server:
        painter = load_generator(f"served:{server.url}#tiny", service=service)
        with pytest.raises(ServiceError, match=r"service\.budget"):
            painter.generate(["a", "b", "c", "d"], seeds=[1, 2, 3, 4], sampling=Sampling())
        assert len(server.requests) == 2
        assert spent_in(tmp_path, server).total.images == 2
    model = SimpleNamespace(embed_texts=lambda texts: np.ones((len(texts), 2)))
    with serving(VectorServer(model)) as server:
        embeddings = replace(service, interface="embeddings", budget=2.5)
        encoder = load_model(f"served:{server.url}#tiny", service=embeddings)
        with pytest.raises(ServiceError, match=r"service\.budget"):
            encoder.embed_texts([str(number) for number in range(99)])
        assert len(server.requests) == 2


def test_servers_that_count_nothing_are_estimated(server, tmp_path):
    body = completion("a long answer")
    del body["usage"]
    server.reply = lambda *_: (200, body, {})
    model_of(server, store=str(tmp_path)).answer(pictures(2), "Which?")
    assert spent_in(tmp_path, server).estimated == Usage(
        2, 2, 2 * (estimate_tokens("Which?") + 1), 2 * estimate_tokens("a long answer")
    )


@pytest.mark.parametrize(
    ("trouble", "unsettled"),
    [((429, {}, {}), 0), ((500, b"", {}), 0), ((200, b"{not json", {}), 1), (None, 1)],
)
def test_requests_that_a_server_refused_cost_nothing(server, tmp_path, trouble, unsettled):
    server.reply = lambda _, number: (200, completion(), {}) if number else trouble
    model_of(server, store=str(tmp_path)).answer(pictures(1), "Which?")
    spent = spent_in(tmp_path, server)
    assert (spent.counted.requests, spent.n_unsettled) == (1, unsettled)


def test_a_budget_needs_prices():
    with pytest.raises(InputError, match="prices"):
        Service(budget=1.0)


def test_a_budget_for_no_request_names_one_that_is_enough(server):
    prices = Prices(input=1.0)
    (reply,) = model_of(server, prices=prices, budget=0.01).answer(pictures(1), "Who?")
    # Before the first count a picture takes 40,000 tokens at most.
    assert "0.0400" in reply.reason
    (answer,) = model_of(server, prices=prices, budget=0.04).answer(pictures(1), "Who?")
    assert answer == "yes"


def test_the_last_request_needs_what_is_spent_and_its_own_cost(database):
    spending = Spending(database, "a", Prices(request=0.25), budget=0.6)
    for _ in range(2):
        settle(spending, REQUEST)
    with pytest.raises(BudgetError) as error, spending.sending(REQUEST):
        pass
    assert (error.value.spent, error.value.cost) == (0.5, 0.25)
