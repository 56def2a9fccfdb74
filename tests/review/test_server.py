"""The page of `equipoise review`: its content, and the requests that it answers."""

import os
import random
import subprocess
import sys
import time
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import numpy as np
import polars as pl
import pytest

from equipoise.core import DataError, RunError
from equipoise.evidence import ImageError
from equipoise.review.examples import Examples, Selection
from equipoise.review.server import Thumbnails, application, serve
from review.browser import HOST, TOKEN, Links, ask
from review.project import finished

HOSTILE = "<script>alert(1)</script>"


def predictions(n=400):
    """Return a table in which women who are pilots are often taken for nurses."""
    rng = np.random.default_rng(0)
    group, job = rng.choice(["men", "women"], n), rng.choice(["chef", "nurse", "pilot"], n)
    wrong = rng.random(n) < np.where((group == "women") & (job == "pilot"), 0.6, 0.05)
    return pl.DataFrame(
        {
            "id": [f"{row:04d}.png" for row in range(n)],
            "job": job,
            "said": np.where(wrong, np.where(job == "nurse", "chef", "nurse"), job),
            "group": np.where(group == "men", HOSTILE, group),
        }
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from PIL import Image

    folder = tmp_path_factory.mktemp("review")
    (folder / "photos").mkdir()
    table = predictions()
    for place, name in enumerate(table["id"]):
        shade = (200, place % 200, 60) if table["group"][place] == "women" else (60, 90, 200)
        Image.new("RGB", (64, 48), shade).save(folder / "photos" / name)
    images = {"table": table, "id": "id", "path": "id", "root": "photos"}
    data = {"images": images, "target": "job", "groups": ["group"]}
    models = {"ours": {"table": table, "id": "id", "prediction": "said"}}
    return finished(folder, {"audit": "predictions", "data": data, "models": models})


def test_a_finding_leads_to_its_images_in_two_clicks(run):
    app = application(run, HOST, TOKEN)
    status, _, page = ask(app, "/")
    assert status == 200
    finding = next(link for link in Links(page).links if link.startswith("/finding/"))
    status, _, page = ask(app, finding)
    assert status == 200
    pictures = Links(page).pictures
    assert pictures
    status, headers, picture = ask(app, pictures[0])
    assert (status, headers["content-type"], picture[:2]) == (200, "image/jpeg", b"\xff\xd8")


def test_a_finding_shows_exactly_the_images_that_it_counts(run):
    examples, table = Examples.of(run), predictions()
    finding = next(
        finding
        for finding in examples.result.findings
        if (finding.metric, finding.subject) == ("true_positive_rate", "pilot") and finding.groups
    )
    wrong = pl.col("said") != pl.col("job")
    for outcome, rows in (
        ("miss", table.filter((pl.col("job") == "pilot") & wrong)),
        ("true positive", table.filter((pl.col("job") == "pilot") & ~wrong)),
    ):
        chosen = Selection(outcome=outcome, size=500)
        for group in examples.select(finding, chosen):
            expected = rows.filter(pl.col("group") == group.name)["id"].to_list()
            assert group.total == len(expected)
            assert sorted(image.image_id for image in group.images) == sorted(expected)
    nurse = next(
        finding
        for finding in examples.result.findings
        if (finding.metric, finding.subject) == ("false_positive_rate", "nurse") and finding.groups
    )
    assert next(iter(examples.outcomes(finding))) == "miss"
    assert next(iter(examples.outcomes(nurse))) == "false alarm"
    predicted = table.filter((pl.col("said") == "nurse") & wrong)
    groups = [*examples.select(nurse, Selection(outcome="false alarm", size=500))]
    assert {i.image_id for group in groups for i in group.images} == {*predicted["id"]}


def test_the_order_is_random_and_pages_share_no_image(run):
    examples = Examples.of(run)
    finding = next(finding for finding in examples.result.findings if finding.subject == "chef")
    pages = [
        [image.place for group in examples.select(finding, chosen) for image in group.images]
        for chosen in (Selection("true positive", page=page, size=5) for page in range(3))
    ]
    again = Examples.of(run).select(finding, Selection("true positive", size=5))
    assert pages[0] == [image.place for group in again for image in group.images]
    assert not {*pages[0]} & {*pages[1]}
    assert pages[0] != sorted(pages[0])


def test_hostile_labels_stay_text(run):
    app = application(run, HOST, TOKEN)
    for path in ("/", "/finding/0", "/causes", "/causes/0", "/code/0?coder=%3Cscript%3E"):
        _, headers, page = ask(app, path)
        assert HOSTILE.encode() not in page
        assert Links(page).inline == 0
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "default-src 'none'" in headers["content-security-policy"]


def test_the_token_becomes_a_cookie_once(run):
    app = application(run, HOST, TOKEN)
    token = TOKEN.replace(" ", "%20")
    status, headers, _ = ask(app, f"/?token={token}", cookie="")
    assert (status, headers["location"]) == (303, "/")
    elsewhere = ask(app, f"http://{HOST}//example.org/?token={token}", cookie="")
    assert elsewhere[1]["location"] == "/example.org/"
    cookie = headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_foreign_hosts_origins_tokens_and_paths_are_refused(run):
    """200 requests that are not the page's own."""
    rng, app = random.Random(0), application(run, HOST, TOKEN)
    paths = ["/", "/finding/0", "/image/small/0", "/assets/review.css"]
    hosts = ["example.org", "127.0.0.1", "127.0.0.1:80", "localhost", "[::1]:4321", "0.0.0.0:4321"]
    origins = ["http://example.org", "null", "https://127.0.0.1:4321", "http://127.0.0.1:80", "x"]
    cookies = ["", "equipoise_review_4321=", "equipoise_review_4321=other", f"other={TOKEN}"]
    foreign = [
        "/../etc/passwd", "/image/small/..%2f..%2fetc%2fpasswd", "/image/small/-1",
        "/image/huge/0", "/image/small/9999999999", "/finding/99999", "/assets/../server.py",
        "/assets/review.css.bak", "//etc/passwd", "/image/small/1.5", "/finding/0?outcome=none",
        "/finding/0?order=none", "/finding/0?group=none", "/finding/0?page=x", "/?token=other",
        "/finding/0?cause=none", "/finding/0?low=x", "/finding/0?hide=none", "/finding/0?view=none",
        "/finding/0/9999", "/finding/99999/0", "/image/small/0?finding=9999",
        "/image/small/0?finding=-1", "/image/small/0?hide=none",
        "/causes/99", "/causes/-1", "/code/99",
        "/code/0?coder=a&image=-1", "/code/0?image=x",
        *(f"/finding/0?page={n}" for n in ("9" * 26, "9" * 5000, "%D9%A3", "1e3", "1_0", "%C2%B2")),
        *(f"/image/small/0?finding={n}" for n in ("9" * 26, "9" * 5000, "%D9%A3", "%C2%B2")),
        *(f"{path}/{n}" for n in ("9" * 26, "9" * 5000, "%D9%A3")
          for path in ("/finding", "/finding/0", "/image/small", "/causes", "/code")),
        "/finding/0?low=nan", "/finding/0?high=NaN", "/code/0?coder=a&image=%D9%A3",
        "/files.json", "/image/small/0/../../manifest.json", "/%00", "/finding/", "/image",
    ]  # fmt: skip
    for _ in range(50):
        assert ask(app, rng.choice(paths), host=rng.choice(hosts))[0] == 403
        assert ask(app, rng.choice(paths), origin=rng.choice(origins))[0] == 403
        assert ask(app, rng.choice(paths), cookie=rng.choice(cookies))[0] == 403
        assert ask(app, rng.choice(foreign))[0] == 403


@pytest.mark.parametrize(
    "query",
    [
        "page=999999999", "page=-5", "low=1e999", "high=-inf", "low=1e308&high=-1e308",
        "low=", "order=", "page=&page=1",
    ],
)  # fmt: skip
def test_odd_numbers_of_an_address_lead_to_a_page(query, run):
    assert ask(application(run, HOST, TOKEN), f"/finding/0?{query}")[0] == 200


FAILING = """
import sys
from equipoise.cli.app import run
from equipoise.review.server import ReviewPage
def fails(*_):
    raise ValueError("odd")
ReviewPage.index = fails
sys.exit(run(["review", sys.argv[1]]))
"""


def _status(host, path, cookie):
    for _ in range(200):
        with closing(HTTPConnection(host, timeout=60)) as connection:
            try:
                connection.request("GET", path, headers={"Cookie": cookie})
                response = connection.getresponse()
            except ConnectionRefusedError:
                time.sleep(0.05)
            else:
                response.read()
                return response.status
    raise AssertionError("the page never answered")


@pytest.mark.parametrize("debug", ["", "1"])
def test_an_unexpected_error_is_one_line_unless_its_traceback_is_asked_for(debug, run):
    process = subprocess.Popen(
        [sys.executable, "-c", FAILING, str(run)],
        env={**os.environ, "EQUIPOISE_DEBUG": debug},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        address = urlsplit(process.stdout.readline().removeprefix("review: ").strip())
        cookie = f"equipoise_review_{address.port}={address.query.removeprefix('token=')}"
        statuses = [_status(address.netloc, path, cookie) for path in ("/", "/finding/0")]
    finally:
        process.terminate()
        lines = process.communicate(timeout=60)[1].splitlines()
    assert statuses == [500, 200]
    failed = [number for number, line in enumerate(lines) if "GET /: " in line]
    assert len(failed) == 1
    assert "ValueError" in lines[failed[0]]
    assert any(line.startswith("Traceback") for line in lines) == bool(debug)
    assert debug or failed == [0]


def test_thumbnails_stay_within_their_limit(run):
    thumbnails = Thumbnails(Examples.of(run), limit=5_000)
    first = thumbnails.get(0, 240)
    for place in range(60):
        thumbnails.get(place, 240, hide="all" if place % 2 else None)
        assert thumbnails.size <= 5_000
    assert thumbnails.get(0, 240) == first


def test_a_missing_file_is_no_page(run):
    (run.parent / "photos" / predictions()["id"][7]).unlink()
    with pytest.raises((OSError, ImageError)):
        Thumbnails(Examples.of(run)).get(7, 240)
    assert ask(application(run, HOST, TOKEN), "/image/small/7")[0] == 404


def test_a_run_without_images_names_the_remedy(tmp_path):
    table = predictions()
    data = {"table": table, "id": "id", "target": "job", "groups": ["group"]}
    models = {"ours": {"table": table, "id": "id", "prediction": "said"}}
    run = finished(tmp_path, {"audit": "predictions", "data": data, "models": models})
    with pytest.raises(RunError):
        Examples.of(run)


def test_a_folder_without_images_is_refused_before_anything_is_served(tmp_path):
    with pytest.raises(DataError) as raised:
        next(serve(tmp_path, folder=tmp_path / "none"))
    assert raised.value.file == str(tmp_path / "none")
