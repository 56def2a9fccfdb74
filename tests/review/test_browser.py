"""The review page in Chromium: clicks from the first page to images, and keys of the form."""

import time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError

import pytest

from cause_worlds import KINDS, World
from equipoise.cli.app import run as command
from equipoise.review import read_labels
from equipoise.review.server import serve

# Fulfilled once pictures have loaded: those below the window wait until it gets there.
LOADED = """return new Promise((done) => {
  const wait = () => [...document.images].some((one) => one.complete && one.naturalWidth)
    ? done(true) : setTimeout(wait, 20);
  wait();
});"""


def served(run):
    """Return the address of the pages of a run."""
    pages = serve(run)
    address = next(pages)
    Thread(target=list, args=(pages,), daemon=True).start()
    return address


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    World("paintings", 300, seed=2).audited(folder)
    return folder


@pytest.fixture(scope="module")
def address(folder):
    return served(folder / "run")


def planted(world):
    """Return which images have the planted cause."""
    return {
        "small objects": world.size < 9,
        "wrong labels": world.wrong_label,
        "paintings": world.painting,
        "a sub-type": world.other_type,
        "model bias": world.women & ~world.right,
    }[world.kind]


def shown(browser, group=""):
    """Return the rows of the images on the page of a finding, of one group or all."""
    assert browser.run(LOADED)
    script = """return [...document.querySelectorAll(".groups section")]
      .filter((one) => one.querySelector("h2").textContent.startsWith(arguments[0]))
      .flatMap((one) => [...one.querySelectorAll("img")].map((image) => image.alt))"""
    return [int(name.removesuffix(".png")) for name in browser.run(script, group)]


@pytest.mark.parametrize("kind", KINDS)
def test_two_clicks_lead_to_the_images_of_the_planted_cause(browser, kind, tmp_path):
    world = World(kind, 300, seed=2)
    run = str(world.audited(tmp_path))
    vectors = ["--embeddings", tmp_path / "vectors.npy", "--ids", tmp_path / "ids.txt"]
    named = ["--cause", "box size", "--cause", "medium", *map(str, vectors), "--clusters", "2"]
    assert command(["causes", run, "--finding", "accuracy", *named]) == 0
    browser.visit(served(Path(run)))
    if KINDS[kind] is None:
        browser.click(".findings a")
        browser.click(".outcomes a")
        rows = shown(browser, "women")
    else:
        browser.click("header a[href='/causes']")
        first = browser.run("return document.querySelector('td a').textContent")
        assert first.startswith(KINDS[kind])
        browser.click("td a")
        rows = shown(browser)
    assert len(rows) > 5
    # A third of the sizes is wider than the planted objects.
    assert planted(world)[rows].mean() > (0.6 if kind == "small objects" else 0.99)


def image_of(browser, expected=bool):
    """Return the image of the form, once it is the expected one."""
    for _ in range(100):
        with suppress(HTTPError):  # While a page is on its way there is none to ask.
            image = browser.run("return (document.querySelector('[name=image]') || {}).value")
            if expected(image):
                return image
        time.sleep(0.05)
    raise AssertionError(image)


def test_keys_toggle_codes_and_go_on(browser, address, folder):
    browser.visit(address)
    browser.click("header a[href='/causes']")
    browser.click("main ul a[href^='/code/']")
    browser.run("document.querySelector('input[name=coder]').value = 'ann'")
    browser.click("main form button")
    first = image_of(browser)
    browser.press("2", "4", "2", "n")
    image_of(browser, lambda image: image != first)
    answers = read_labels(folder / "run").filter(labeller="ann", question="cause: bowl")
    assert answers["answer"].to_list() == ["incorrect label"]
    browser.press("p")
    image_of(browser, lambda image: image == first)
    assert browser.run("return document.querySelectorAll('.codes input:checked').length") == 1


def test_a_finding_leads_to_its_images_in_two_clicks(browser, address):
    browser.visit(address)
    browser.click(".findings a")
    browser.click("a.image")
    assert browser.run(LOADED)
    first = browser.run("return document.querySelector('img.large').alt")
    browser.press("\ue014")  # the right arrow
    changed = f"return document.querySelector('img.large').alt !== {first!r}"
    wait(browser, changed)
    browser.press("\ue00c")  # Escape
    wait(browser, "return document.querySelectorAll('.groups a.image').length > 1")


def wait(browser, script):
    """Wait until a script is true."""
    for _ in range(100):
        with suppress(HTTPError):  # While a page is on its way there is none to ask.
            if browser.run(script):
                return
        time.sleep(0.05)
    raise AssertionError(script)
