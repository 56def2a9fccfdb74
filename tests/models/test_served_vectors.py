"""Models behind an interface of embeddings: order, encodings, dimensions, forms, trouble."""

import base64

import numpy as np
import pytest

from audits.live_models.fakes import Encoder, means
from equipoise.core import ModelError
from equipoise.models import DualEncoder, Service, load_model
from equipoise.models.protocols import ServiceError
from interface_servers import VectorServer, serving

TEXTS = [f"{'a' * n} b" for n in range(70)]


@pytest.fixture
def server():
    with serving(VectorServer(Encoder())) as running:
        yield running


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr("equipoise.models.served.time.sleep", lambda _: None)


def encoder_of(server, **settings):
    service = Service(interface="embeddings", **settings)
    return load_model(f"served:{server.url}#tiny", service=service)


def pictures(n=20, size=(6, 4)):
    return [np.full((*size, 3), 10 * shade, np.uint8) for shade in range(n)]


def of_texts(server):
    return [body["input"] for body in server.requests if "input" in body]


@pytest.mark.parametrize("encoding", ["float", "base64"])
@pytest.mark.parametrize("form", ["messages", "input"])
def test_vectors_are_those_of_texts_and_pictures_in_order(server, form, encoding):
    server.form, server.encoding = form, encoding
    model = encoder_of(server)
    assert isinstance(model, DualEncoder)
    np.testing.assert_array_equal(model.embed_texts(TEXTS), Encoder().embed_texts(TEXTS))
    np.testing.assert_array_equal(model.embed_images(pictures()), means(pictures()))
    assert (model.info.dimension, model.info.scale) == (3, None)


def test_texts_and_pictures_are_sent_in_batches(server):
    server.form = "input"
    model = encoder_of(server)
    server.requests.clear()
    model.embed_texts(TEXTS)
    assert sorted(map(len, of_texts(server))) == [6, 32, 32]
    server.requests.clear()
    model.embed_images(pictures(20))
    assert sorted(map(len, of_texts(server))) == [2, 4, 8, 8]  # the first two find the form


def test_large_pictures_are_shrunk(server):
    encoder_of(server, longest_side=8).embed_images(pictures(1, (40, 20)))
    sizes = [server.pictures(body)[0].shape for body in server.requests if "messages" in body]
    assert sizes[-1] == (8, 4, 3)


def test_vectors_without_an_index_are_in_the_order_of_the_request(server):
    plain = server.vectors
    server.vectors = lambda rows: {
        "data": [{"embedding": entry["embedding"]} for entry in plain(rows)["data"][::-1]]
    }
    np.testing.assert_array_equal(
        encoder_of(server).embed_texts(TEXTS), Encoder().embed_texts(TEXTS)
    )


def entries(*vectors, indices=None):
    indices = indices or range(len(vectors))
    return {"data": [{"index": index, "embedding": vector}
                     for index, vector in zip(indices, vectors, strict=True)]}  # fmt: skip


ROW = [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "body",
    [
        entries(ROW),
        entries(ROW, ROW, ROW),
        entries(ROW, ROW, indices=[0, 0]),
        entries(ROW, ROW, indices=[1, 2]),
        entries(ROW, ROW, indices=["0", None]),
        entries(ROW, [1.0, 2.0]),
        entries(ROW, [ROW, ROW]),
        entries(ROW, ["a", "b", "c"]),
        entries(ROW, [1.0, None, 2.0]),
        entries(ROW, [1.0, 1e39, 2.0]),
        entries(ROW, "not base64"),
        entries(ROW, base64.b64encode(b"12345").decode()),
        entries([], []),
        {"data": [ROW, ROW]},
        {"data": {}},
        {},
    ],
)
def test_answers_of_another_form_are_asked_for_again(server, body):
    model = encoder_of(server, attempts=3)
    server.trouble_of = lambda _, number: (200, body, {}) if number < 3 else None
    np.testing.assert_array_equal(model.embed_texts(["a", "o"]), Encoder().embed_texts(["a", "o"]))
    server.trouble_of = lambda *_: (200, body, {})
    with pytest.raises(ModelError, match="request"):
        model.embed_texts(["b", "c"])


def test_vectors_of_another_length_are_refused(server):
    model = encoder_of(server)
    server.trouble_of = lambda body, _: (200, entries([1.0, 2.0]), {})
    with pytest.raises(ServiceError, match="2 numbers.* 3"):
        model.embed_texts(["a"])


def test_pictures_and_texts_in_two_spaces_are_refused(server):
    server.trouble_of = lambda body, number: (
        (200, entries([1.0, float(number)]), {}) if "messages" in body else None
    )
    with pytest.raises(ServiceError, match="one space"):
        encoder_of(server).embed_images(pictures(1))


def test_a_server_that_takes_no_pictures_is_named_with_what_to_do(server):
    server.form = ""
    model = encoder_of(server)
    assert len(model.embed_texts(["a"])) == 1
    with pytest.raises(ServiceError, match=r"takes no pictures.*'messages'.*'input'.*To do"):
        model.embed_images(pictures(1))


def test_a_server_that_looks_at_no_picture_is_refused(server):
    server.trouble_of = lambda body, _: (200, entries(ROW), {}) if "messages" in body else None
    with pytest.raises(ServiceError, match="same vector"):
        encoder_of(server).embed_images(pictures(1))


def test_trouble_while_the_form_is_looked_for_is_no_refusal_of_pictures(server):
    server.trouble_of = lambda body, number: (
        (401, {"error": {"message": "wrong key"}}, {}) if "messages" in body else None
    )
    with pytest.raises(ServiceError, match="wrong key") as caught:
        encoder_of(server).embed_images(pictures(1))
    assert "pictures" not in str(caught.value)


@pytest.mark.parametrize("status", [404, 405, 422])
def test_a_server_without_embeddings_is_refused_when_it_is_loaded(server, status):
    server.trouble_of = lambda *_: (status, {"error": {"message": "not here"}}, {})
    with pytest.raises(ServiceError, match="not here.*embeddings"):
        encoder_of(server)


def test_kept_vectors_are_never_asked_for_again(server, tmp_path):
    def embed():
        model = encoder_of(server, store=str(tmp_path))
        return model.embed_texts(TEXTS), model.embed_images(pictures())

    first, n_requests = embed(), len(server.requests)
    again = embed()
    assert len(server.requests) == n_requests
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))


def test_settings_of_chat_are_no_part_of_the_model(server):
    key = encoder_of(server).info.key
    assert encoder_of(server, max_tokens=9, temperature=1.0).info.key == key
    assert encoder_of(server, longest_side=9).info.key != key
