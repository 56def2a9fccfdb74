"""Text-to-image models behind an interface: pictures, refusals, trouble, parameters, URLs."""

import numpy as np
import pytest

from equipoise.core import InputError, ModelError
from equipoise.models import ImageGenerator, NoAnswer, Sampling, Service, load_generator
from equipoise.models.protocols import ServiceError
from interface_servers import ImageServer, encoded, image, png, serving

PLAIN = Sampling()


@pytest.fixture
def server():
    with serving(ImageServer()) as running:
        running.reply = lambda body, _: (200, image(picture_of(body)), {})
        yield running


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    for module in ("served", "served_images"):
        monkeypatch.setattr(f"equipoise.models.{module}.time.sleep", lambda _: None)


def picture_of(body):
    """Return a picture that shows its prompt and its seed."""
    return np.full((4, 5, 3), (len(body["prompt"]), body.get("seed", 0), 7))


def generator_of(server, **settings):
    return load_generator(f"served:{server.url}#tiny", service=Service(**settings))


def generate(server, prompts=("a cat",), seeds=None, sampling=PLAIN, **settings):
    model = generator_of(server, **settings)
    return model.generate(prompts, seeds=seeds or range(len(prompts)), sampling=sampling)


def test_pictures_are_those_of_prompts_and_seeds_in_order(server):
    assert isinstance(generator_of(server), ImageGenerator)
    prompts = ["x" * n for n in range(1, 21)]
    pictures = generate(server, prompts)
    shown = [tuple(picture[0, 0]) for picture in pictures]
    assert shown == [(n, n - 1, 7) for n in range(1, 21)]
    assert {(request["model"], request["n"], request["response_format"])
            for request in server.requests} == {("tiny", 1, "b64_json")}  # fmt: skip


def test_a_seed_fits_every_server(server):
    generate(server, seeds=[2**63 - 1])
    assert server.requests[0]["seed"] == 2**31 - 1


def test_what_is_sent_is_what_the_service_says(server):
    sampling = Sampling(steps=9, guidance=3.0, negative_prompt="blur", height=64, width=32)
    names = ("size", "num_inference_steps", "guidance_scale", "negative_prompt")
    generate(server, sampling=sampling, image_parameters=names)
    sent = {name: server.requests[0][name] for name in names}
    assert sent == {"size": "32x64", "num_inference_steps": 9, "guidance_scale": 3.0,
                    "negative_prompt": "blur"}  # fmt: skip
    assert not {"seed", "response_format"} & {*server.requests[0]}
    generate(server)
    assert {*server.requests[1]} == {"model", "prompt", "n", "response_format", "seed", "picture"}


def test_half_a_size_is_refused(server):
    with pytest.raises(InputError, match="height or width"):
        generate(server, sampling=Sampling(height=64))


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"code": "content_policy_violation", "message": "not allowed"}}),
        (400, {"error": {"code": "moderation_blocked", "type": "image_generation_user_error"}}),
        (200, {"data": [], "error": {"code": "content_filter"}}),
        (200, image(finish_reason="CONTENT_FILTERED", b64_json="")),
        (200, image(finish_reason="content_filter")),
    ],
)
def test_filters_of_all_forms_are_refusals(server, status, body):
    server.reply = lambda *_: (status, body, {})
    assert generate(server) == [None]
    assert len(server.requests) == 1


def test_a_picture_that_ends_early_is_cut_and_others_are_there(server):
    server.reply = lambda body, _: (
        (200, image(b64_json=encoded(png(picture_of(body))[:-30])), {})
        if body["prompt"] == "cut" else (200, image(picture_of(body)), {})
    )  # fmt: skip
    first, cut, last = generate(server, ["a", "cut", "b"])
    assert isinstance(cut, NoAnswer)
    assert cut.stage == "cut"
    assert (first[0, 0, 0], last[0, 0, 0]) == (1, 1)


@pytest.mark.parametrize(
    "trouble",
    [
        (429, {"error": {"message": "slow down"}}, {"Retry-After": "1"}),
        (500, b"oops", {}),
        (200, b"{not json", {}),
        (200, {"data": [{"b64_json": "not base64"}]}, {}),
        (200, {"data": [{}]}, {}),
        (200, {}, {}),
        None,
    ],
)
def test_requests_are_sent_again_after_trouble(server, trouble):
    server.reply = lambda body, number: (
        trouble if number < 2 else (200, image(picture_of(body)), {})
    )
    (picture,) = generate(server, timeout=0.5)
    assert picture.shape == (4, 5, 3)
    assert len(server.requests) == 3


def test_a_prompt_that_fails_each_time_stands_alone(server):
    server.reply = lambda body, _: (
        (500, {"error": {"message": "broken"}}, {}) if body["prompt"] == "b"
        else (200, image(picture_of(body)), {})
    )  # fmt: skip
    first, failed, last = generate(server, ["a", "b", "c"], attempts=2)
    assert (first.shape, last.shape) == ((4, 5, 3), (4, 5, 3))
    assert failed.stage == "request"
    assert "broken" in failed.reason


def test_a_parameter_that_the_server_refuses_is_named_with_what_to_do(server):
    server.reply = lambda *_: (
        400, {"error": {"message": "Unknown parameter: 'response_format'."}}, {},
    )  # fmt: skip
    with pytest.raises(ServiceError, match=r"response_format.*service\.image_parameters"):
        generate(server)
    assert len(server.requests) == 1


def test_kept_pictures_are_never_asked_for_again(server, tmp_path):
    first = generate(server, ["a", "b"], store=str(tmp_path))
    again = generate(server, ["a", "b", "c"], store=str(tmp_path))
    assert len(server.requests) == 3
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=False))


def test_images_of_a_prompt_without_seeds_are_separate_requests(server, tmp_path):
    settings = {"image_parameters": ("response_format",), "store": str(tmp_path)}
    server.reply = lambda _, number: (200, image(np.full((2, 2, 3), number)), {})
    pictures = generate(server, ["a"] * 3, **settings)
    assert len({picture[0, 0, 0] for picture in pictures}) == 3


def test_a_url_on_this_machine_is_fetched_without_the_key(server, monkeypatch):
    monkeypatch.setenv("SECRET", "sk-nobody")
    server.files["/made/1.png?sig=a"] = (200, png(np.full((3, 2, 3), 5)), {})
    place = server.url.removesuffix("/v1")
    server.reply = lambda *_: (200, image(url=f"{place}/made/1.png?sig=a"), {})
    (picture,) = generate(server, key="SECRET")
    assert picture.shape == (3, 2, 3)
    assert "Authorization" not in server.headers[-1]
    server.reply = lambda *_: (200, image(url=f"data:image/png;base64,{encoded(png(picture))}"), {})
    assert np.array_equal(generate(server)[0], picture)


@pytest.mark.parametrize(
    "url", ["https://elsewhere.example/a.png", "http://allowed.example/a.png", "file:///etc/passwd",
            "http://[::1/a.png", "//a/b"]
)  # fmt: skip
def test_a_url_at_a_host_that_is_not_allowed_is_not_fetched(server, url):
    server.reply = lambda *_: (200, image(url=url), {})
    with pytest.raises(ServiceError, match="response_format"):
        generate(server, allow_hosts=("allowed.example",))


def test_a_url_without_a_picture_fails_after_some_attempts(server):
    place = server.url.removesuffix("/v1")
    server.files["/gone.png"] = (404, {}, {})
    server.reply = lambda *_: (200, image(url=f"{place}/gone.png"), {})
    (failed,) = generate(server, attempts=2)
    assert failed.stage == "request"
    assert len(server.requests) == 1


def test_what_is_sent_decides_which_model_it_is(server):
    key = generator_of(server).info.key
    assert generator_of(server, max_tokens=9, longest_side=9).info.key == key
    assert generator_of(server, image_parameters=("size",)).info.key != key


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("served:http://127.0.0.1:1/v1", "expected the URL"),
        ("served:https://models.example/v1#m", "allow_hosts"),
        ("served:http://127.0.0.1:1/v1#m", "no answer of the server"),
    ],
)
def test_names_and_hosts_that_are_refused(name, problem):
    with pytest.raises(ModelError, match=problem):
        load_generator(name)
