"""The labelling page: hostile texts stay text, keys answer, answers are saved."""

import html
import json
import re
import subprocess
from importlib.resources import files

from equipoise.report import render
from equipoise.report.rendering import asset
from equipoise.review import Question, label_page
from report.synthetic import faces

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e"
PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="


def page(**fields):
    question = Question(HOSTILE, HOSTILE, ("yes", HOSTILE), "yes", names_label=True)
    return label_page(question, ["k1", "k2", "k3"], [PIXEL] * 3, [HOSTILE] * 3, **fields)


def test_texts_are_escaped_and_nothing_is_loaded():
    text = page(labeller='"><i>')
    assert "<img src=x" not in text
    assert "<i>" not in text
    assert text.count("</script>") == 2
    policy = html.unescape(re.search(r'Policy" content="(.*?)"', text)[1])
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:|//)", text)


def test_pages_share_one_style():
    family = asset("equipoise.report", "family.css")
    assert family in page()
    assert family in render(faces())
    styles = files("equipoise").joinpath("review", "assets").iterdir()
    own = [style.read_text(encoding="utf-8") for style in styles if style.name.endswith(".css")]
    assert len(own) == 2
    # Colours are named once.
    assert not any(re.search(r":root|#[0-9a-f]{3,6}\b", text) for text in own)


def test_earlier_answers_are_counted_by_person():
    text = page(answered={"Bo": 2, HOSTILE: 3})
    assert "Bo: 2 of 3" in text
    assert "<img src=x" not in text


DRIVE = """<pre id="found"></pre><script>
addEventListener("load", () => {
  const frame = document.querySelector("iframe"), page = frame.contentDocument;
  const press = (key) => page.dispatchEvent(new KeyboardEvent("keydown", { key }));
  let saved = "";
  const view = frame.contentWindow;
  view.Blob = function (parts) { saved = parts.join(""); };
  view.URL.createObjectURL = () => "#";
  view.URL.revokeObjectURL = () => {};
  press("1");
  const asked = page.getElementById("progress").textContent;
  const name = page.getElementById("labeller");
  name.value = "Ann";
  name.dispatchEvent(new KeyboardEvent("keydown", { key: "1", bubbles: true }));
  name.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  const typed = page.activeElement === name;
  for (const key of ["1", "2", "ArrowLeft", "1", "ArrowRight", "3", "s"]) press(key);
  const text = (id) => page.getElementById(id).textContent;
  const images = page.querySelectorAll("img").length;
  const found = { asked, typed, saved, progress: text("progress"), images, label: text("label") };
  document.getElementById("found").textContent = JSON.stringify(found);
});
</script>"""


def test_keys_answer_and_answers_are_saved(chromium, tmp_path):
    path = tmp_path / "frame.html"
    path.write_text(
        f'<!doctype html><meta charset="utf-8">{DRIVE}'
        f'<iframe srcdoc="{html.escape(page())}"></iframe>',
        encoding="utf-8",
    )
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
               "--virtual-time-budget=5000", "--dump-dom",
               f"--user-data-dir={tmp_path / 'profile'}")  # fmt: skip
    done = subprocess.run(
        [chromium, *options, path.as_uri()], capture_output=True, text=True, check=True, timeout=120
    )
    state = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', done.stdout)[1]))
    assert state["asked"] == "Enter your name first."
    assert not state["typed"]
    rows = json.loads(state["saved"])
    assert [(row["key"], row["answer"], row["labeller"]) for row in rows] == [
        ("k1", "yes", "Ann"), ("k2", "yes", "Ann"),
    ]  # fmt: skip
    assert rows[0]["question"] == HOSTILE
    assert state["progress"] == "Image 3. Ann: 2 of 3 answered"
    assert state["images"] == 1
    assert "<img src=x onerror" in state["label"]
