"""The review page in Chromium: clicks from the first page to images, and keys of the form."""

import time
from contextlib import suppress
from threading import Thread
from urllib.error import HTTPError

import polars as pl
import pytest

from cause_worlds import World
from equipoise.cli.app import run as command
from equipoise.review import read_labels
from equipoise.review.server import serve

# Fulfilled once every picture in view has loaded.
LOADED = """return new Promise((done) => {
  const wait = () => [...document.images].every((one) => one.complete || one.loading === "lazy")
    ? done([...document.images].filter((one) => one.naturalWidth).map((one) => one.alt))
    : setTimeout(wait, 20);
  wait();
});"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    World("paintings", 400, seed=2).audited(folder)
    arguments = ["causes", str(folder / "run"), "--finding", "true_positive_rate"]
    assert command([*arguments, "--subject", "cup", "--cause", "medium"]) == 0
    return folder


@pytest.fixture(scope="module")
def address(folder):
    pages = serve(folder / "run")
    address = next(pages)
    Thread(target=list, args=(pages,), daemon=True).start()
    return address


def test_two_clicks_lead_to_the_images_of_the_planted_cause(browser, address, folder):
    browser.visit(address)
    browser.click("header a[href='/causes']")
    browser.click("td a[href^='/finding/']")
    assert "medium: painting" in browser.run("return document.querySelector('[name=cause]').value")
    shown = browser.run("return [...document.images].map((one) => one.alt)")
    table = pl.read_csv(folder / "images.csv")
    painted = {*table.filter(medium="painting", label="cup")["id"]}
    assert shown
    assert {*shown} <= painted
    assert browser.run(LOADED)


def image_of(browser, expected=bool):
    """Return the image of the form, once it is the expected one."""
    for _ in range(100):
        with suppress(HTTPError):  # While a page is on its way there is none to ask.
            found = browser.run("return (document.querySelector('[name=image]') || {}).value")
            if expected(found):
                return found
        time.sleep(0.05)
    raise AssertionError(found)


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
    assert "/image/large/" in browser.address_now
