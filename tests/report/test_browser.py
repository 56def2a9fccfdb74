"""The page in a browser: what a reader sees first, prints, reaches with a keyboard and saves."""

import time
from importlib.resources import files
from itertools import combinations

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.cli.runs import page_of
from equipoise.report import write
from equipoise.report.next_steps import Place
from report.browser import sheets
from report.pages import KINDS, PAGES, result_and_page

DESKTOP, PHONE = (1400, 900), (390, 844)
TAB, ENTER, SHIFT = "\ue004", "\ue007", "\ue008"

# What is on the first screen, how far down the table is, and whether the page fits its window.
SEEN = """
const first = document.querySelector(".first");
const bottom = (one) => one ? one.getBoundingClientRect().bottom : Infinity;
const top = (one) => one ? one.getBoundingClientRect().top : Infinity;
const front = document.querySelectorAll("main > section")[1].querySelector("table, .card");
return {
  sentence: bottom(document.querySelector("h1")),
  step: bottom(first.querySelector(".steps li")),
  chart: top(first.querySelector(".chart svg")),
  chart_end: bottom(first.querySelector(".chart")),
  table: top(front),
  width: document.documentElement.scrollWidth,
  outside: [...first.querySelectorAll(".chart svg text")].filter((text) => {
    const { left, right } = text.getBoundingClientRect();
    const figure = text.closest("figure").getBoundingClientRect();
    return right > left && (left < figure.left - 1 || right > figure.right + 1);
  }).map((text) => text.textContent),
  axes: [...first.querySelectorAll(".chart .role-axis-label")].map((axis) =>
    [...axis.querySelectorAll("text")].map((text) =>
      [text.getBoundingClientRect().left, parseFloat(text.textContent.replace("−", "-"))])
    .filter(([, number]) => !Number.isNaN(number))),
  empty: [...document.querySelectorAll(".chart[data-drawn]")].filter(
    (one) => one.checkVisibility() && !one.querySelector(".mark-symbol path, .mark-rect path")
  ).map((one) => one.getAttribute("aria-label")),
};"""

# Words in sight before the appendix; words for screen readers alone are not counted.
WORDS = """
const words = (text) => (text.trim().match(/\\S+/g) ?? []).length;
const appendix = document.getElementById("appendix");
const texts = document.createTreeWalker(document.getElementById("main"), NodeFilter.SHOW_TEXT);
let count = 0;
while (texts.nextNode()) {
  const { parentElement, data } = texts.currentNode;
  if (!(texts.currentNode.compareDocumentPosition(appendix) & 4)) break;
  if (parentElement.checkVisibility() && !parentElement.closest(".spoken")) count += words(data);
}
return count;"""
MOST_WORDS = 3000

# Everything is opened, and what is repeated is cut: rows, cards and charts of one kind are alike.
VIOLATIONS = """
const [rules] = arguments;
for (const one of document.querySelectorAll("details")) one.open = true;
// What is folded is drawn when it opens.
return new Promise((drawn) => setTimeout(drawn, 200)).then(() => {
for (const one of document.querySelectorAll(
  "tbody tr:nth-child(n + 4), .fold .card:nth-of-type(n + 3), #findings > .card:nth-of-type(n + 4)"
)) one.remove();
for (const one of [...document.querySelectorAll("figure")].slice(2)) one.remove();
const run = { resultTypes: ["violations"], runOnly: rules };
return axe.run(document, run).then(({ violations }) => violations
  .filter(({ impact }) => ["serious", "critical"].includes(impact))
  .map(({ id, nodes }) => id + ": " + nodes.slice(0, 3).map(({ html }) => html).join("; ")));
});"""
RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]}

# Numbers that are on two lines while the page is laid out for paper.
BROKEN = """
const number = "[-−]?[\\\\d∞][\\\\d.\\u202f]*", end = "(?![\\\\w])";
const NUMBERS = new RegExp(
  `\\\\[${number}, ${number}\\\\]|${number}\\u00a0%|(?<![\\\\w.])${number}${end}`, "g");
dispatchEvent(new Event("beforeprint"));
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const broken = [];
while (texts.nextNode()) {
  const node = texts.currentNode;
  if (!node.parentElement.checkVisibility() || node.parentElement.closest("pre")) continue;
  for (const match of node.data.matchAll(NUMBERS)) {
    const range = document.createRange();
    range.setStart(node, match.index);
    range.setEnd(node, match.index + match[0].length);
    const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
    if (lines.size > 1 && match[0].length < 30) broken.push(match[0]);
  }
}
dispatchEvent(new Event("afterprint"));
return broken;"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the folder of a run, written when it is first asked for."""
    folders = {}

    def folder_of(name):
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp("run")
            write(*_arguments(name, folders[name]))
        return folders[name]

    return folder_of


def _arguments(name, folder):
    result, page = result_and_page(name)
    return result, folder, page, Place("runs/first", examples=True)


@pytest.fixture(scope="session")
def axe():
    return files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=PAGES)
def opened(request, run, browser):
    """Open a page in a window of a desktop, for the tests that only look at it."""
    browser.logged()
    browser.open(run(request.param) / "report.html", width=DESKTOP[0], height=DESKTOP[1])
    return browser


def test_the_first_screen_has_the_finding_and_the_next_step(opened):
    _check_first_screen(opened, *DESKTOP)


def test_few_words_are_in_sight_before_the_appendix(opened):
    assert 100 < opened.run(WORDS) <= MOST_WORDS


@pytest.mark.parametrize("kind", ["predictions", "answers", "dataset"])
def test_600_rows_with_many_groups_have_few_words_before_the_appendix(kind, tmp_path, browser):
    table = wide_table(600)
    data = {"groups": [*ATTRIBUTES, *map(list, combinations(ATTRIBUTES, 2))]}
    model = {"table": table, "id": "id"}
    if kind == "dataset":
        data |= {"images": {"table": table, "id": "id"}, "labels": ["job"]}
    elif kind == "answers":
        data |= {"table": table, "id": "id"}
        model |= {"answer": "said"}
    else:
        data |= {"table": table, "id": "id", "target": "job"}
        model |= {"prediction": "said"}
    models = {} if kind == "dataset" else {"models": {"first": model, "second": model}}
    resampling = {"replicates": 50, "permutations": 199}
    config = {"audit": kind, "data": data, "resampling": resampling} | models
    result = audits.run(audits.parse_config(config))
    write(result, tmp_path / "run", page_of(result), Place("run", examples=False))
    browser.open(tmp_path / "run" / "report.html", width=DESKTOP[0], height=DESKTOP[1])
    assert 100 < browser.run(WORDS) <= MOST_WORDS


ATTRIBUTES = ("gender", "age", "race", "skin", "region")
VALUES = {"gender": 2, "age": 3, "race": 4, "skin": 2, "region": 5}


def wide_table(n):
    """Return people of five attributes, with answers that are worse for two of their groups."""
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(VALUES[name], size=n) for name in ATTRIBUTES}
    job, guess = rng.integers(6, size=(2, n))
    right = rng.random(n) < 0.9 - 0.3 * (columns["gender"] == 0) - 0.2 * (columns["race"] == 1)
    named = {name: [f"{name} {code}" for code in codes] for name, codes in columns.items()}
    said = np.where(right, job, guess)
    return pl.DataFrame({
        "id": [*map(str, range(n))], **named,
        "job": [f"job {code}" for code in job], "said": [f"job {code}" for code in said],
    })  # fmt: skip


def test_two_sheets_of_paper_stand_alone(opened):
    assert 1 <= sheets(opened.printed()) <= 2
    assert opened.run(BROKEN) == []
    assert opened.run("return document.querySelectorAll('.left-out').length") == 0


@pytest.mark.parametrize("name", [*KINDS, "predictions", "six models", "comparison", "mitigation"])
def test_the_first_screen_of_a_phone_has_the_finding_and_its_chart(name, run, browser):
    assert name in PAGES
    browser.logged()
    browser.open(run(name) / "report.html", width=PHONE[0], height=PHONE[1], dark=True)
    # Models are below each other, and what to do next is below them.
    _check_first_screen(browser, *PHONE, step=False, screens=3)


def _check_first_screen(browser, width, height, *, step=True, screens=2):
    layout = browser.run(SEEN)
    assert layout["sentence"] <= height
    assert layout["step"] <= height or not step
    assert layout["chart"] <= height - 60
    assert layout["table"] <= screens * height
    assert layout["width"] <= width
    assert layout["empty"] == []
    assert layout["outside"] == []
    for labels in layout["axes"]:
        numbers = [number for _, number in sorted(labels)]
        upright = len({round(left) for left, _ in labels}) == 1
        assert upright or numbers == sorted(numbers)
    assert browser.logged() == []


@pytest.mark.parametrize(
    "name", [*KINDS, "predictions", "comparison", "mitigation", "augmentation"]
)
def test_axe_finds_no_serious_violation(name, run, browser, axe):
    assert name in PAGES
    browser.open(run(name) / "report.html", dark=name in ("predictions", "comparison"))
    browser.run(axe + ";return null")
    assert browser.run(VIOLATIONS, RULES) == []


def test_the_next_step_of_six_models_is_on_the_first_screen(run, browser):
    browser.open(run("six models") / "report.html", width=DESKTOP[0], height=DESKTOP[1])
    layout = browser.run(SEEN)
    assert max(layout["chart_end"], layout["step"]) <= DESKTOP[1]
    last = "return [...document.querySelectorAll('.sentence')][4].getBoundingClientRect().bottom"
    assert browser.run(last) <= 2 * DESKTOP[1]


BROKEN_OPTIONS = """
const code = [...document.querySelectorAll(".command code")].find(
  (one) => one.textContent.includes(" --"));
const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT), options = [];
while (texts.nextNode()) {
  for (const found of texts.currentNode.data.matchAll(/--[a-z]+/g)) {
    const option = document.createRange();
    option.setStart(texts.currentNode, found.index);
    option.setEnd(texts.currentNode, found.index + found[0].length);
    options.push(option);
  }
}
const broken = [];
for (let width = 100; width < 400; width += 2) {
  code.style.flex = `0 0 ${width}px`;
  if (options.some((option) => option.getClientRects().length > 1)) broken.push(width);
}
return [options.length, broken];"""


def test_an_option_of_a_command_does_not_break_at_its_hyphens(run, browser):
    browser.open(run("six models") / "report.html")
    n_options, broken = browser.run(BROKEN_OPTIONS)
    assert n_options
    assert broken == []


def test_the_whole_report_is_printed_with_the_full_address(run, browser):
    browser.open(run("answers") / "report.html", query="?full")
    pages = sheets(browser.printed())
    assert pages > 4
    assert browser.run(BROKEN) == []


def test_the_keyboard_reaches_every_control(run, browser):
    browser.open(run("predictions") / "report.html")
    controls = """return [...document.querySelectorAll("a, button, input, summary, [tabindex='0']")]
      .filter((one) => one.checkVisibility()).length"""
    reached = """const one = document.activeElement; if (one === document.body) return null;
      const first = !one.dataset.reached; one.dataset.reached = "yes"; return first"""
    count = browser.run(controls)
    browser.press(*[TAB] * 3)
    browser.run("document.activeElement.blur(); window.scrollTo(0, 0)")
    n_reached = 0
    for _ in range(count + 2):
        browser.press(TAB)
        n_reached += bool(browser.run(reached))
    assert n_reached == count


def test_the_keyboard_sorts_a_table(run, browser):
    browser.open(run("predictions") / "report.html")
    rows = "[...document.querySelectorAll('#groups tbody tr')]"
    cells = f"return {rows}.map((row) => row.cells[3].textContent)"
    browser.run("[...document.querySelectorAll('#groups thead button')][3].focus()")
    browser.press(ENTER)
    down = [int(text.replace("\u202f", "")) for text in browser.run(cells)]
    assert down == sorted(down, reverse=True)
    browser.press(ENTER)
    assert [int(text.replace("\u202f", "")) for text in browser.run(cells)] == sorted(down)
    state = "return document.activeElement.closest('th').getAttribute('aria-sort')"
    assert browser.run(state) == "ascending"


def test_the_table_by_group_is_saved_as_the_run_has_it(run, browser, tmp_path):
    folder = run("predictions")
    browser.open(folder / "report.html")
    browser.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.run("document.querySelector('[data-file]').click()")
    saved = tmp_path / "groups.csv"
    for _ in range(200):
        if saved.exists() and saved.stat().st_size:
            break
        time.sleep(0.02)
    assert saved.read_bytes() == (folder / "groups.csv").read_bytes()


def test_folds_open_and_their_charts_are_drawn(run, browser):
    browser.logged()
    browser.open(run("associations") / "report.html", height=3000)
    browser.run("for (const one of document.querySelectorAll('details')) one.open = true")
    drawn = """return [...document.querySelectorAll("[data-chart]")].every(
      (one) => one.querySelector("svg"))"""
    for _ in range(1200):
        if browser.run(drawn):
            break
        time.sleep(0.1)
    assert browser.run("return document.querySelectorAll('[data-table]').length") == 0
    assert browser.run("return document.documentElement.scrollWidth") <= DESKTOP[0]
    assert "could not be drawn" not in browser.run("return document.body.innerText")
    assert browser.logged() == []
