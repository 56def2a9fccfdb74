"""Build of the documentation: `make docs`."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import cast

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.search.en import SearchEnglish

import equipoise

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from tools.help_pages import with_help  # noqa: E402
from tools.metric_page import metric_list  # noqa: E402
from tools.room_table import with_table  # noqa: E402
from tools.studies import details  # noqa: E402

EXAMPLES = DOCS.parent / "examples"
REPORTS = DOCS / "_generated" / "reports"
REPORTS.mkdir(parents=True, exist_ok=True)

project = "equipoise"
author = "equipoise maintainers"
copyright = "equipoise maintainers"  # noqa: A001 - the name of the setting
version = release = equipoise.__version__
extensions = [
    "myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx_design",
]  # fmt: skip
exclude_patterns = ["_build", "_generated", "jupyter_execute"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_cache_path = str(DOCS / "_build" / "notebooks")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_output_stderr = "remove"
nb_execution_in_temp = True
# Photos are shown as JPEG, which is a fraction of the PNG.
nb_mime_priority_overrides = [("html", "image/jpeg", 45)]

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
# Tables of data are shown as they are, and charts as SVG.
suppress_warnings = ["misc.highlighting_failure", "mystnb.unknown_mime_type"]

html_theme = "pydata_sphinx_theme"
html_title = f"equipoise {version}"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False, "navbar_center": []}
# All sections in the sidebar: a header of single pages would be too long.
templates_path = ["_templates"]
html_sidebars = {"**": ["contents.html"]}
html_extra_path = ["_generated"]
html_show_sourcelink = False

SEARCHES = (
    "fairness", "bias", "demographic parity", "equalized odds", "equal opportunity", "tpr", "JUnit",
    "false positive rate", "calibration", "WEAT", "NDKL", "MaxSkew", "skin tone", "gender",
    "FairFace", "COCO", "CLIP", "Stable Diffusion", "vision-language model", "scikit-learn",
)  # fmt: skip
"""Words of the field that the site's search finds."""

_OUTSIDE = re.compile(r"\]\((?:\.\./)+examples/([\w/.]*)\)")


def escape_bars(*event: object) -> None:
    """Keep |x|, an absolute value, from being a substitution of reStructuredText."""
    lines = cast("list[str]", event[-1])
    # Of each line, what is outside of `code`.
    lines[:] = ["".join(map(_escaped, re.split("(`[^`]*`)", line))) for line in lines]


def _escaped(part: str) -> str:
    return part if part.startswith("`") else part.replace("|", r"\|")


def examples() -> list[Path]:
    """Return the examples that have their data beside them."""
    # The images of examples/review are drawn by whoever runs it.
    return sorted({path.parent for path in EXAMPLES.glob("*/make.py")} - {EXAMPLES / "review"})


def write_reports(_: Sphinx) -> None:
    """Audit every example with data, and the demo, unless a report is newer than what makes it."""
    package = [*Path(equipoise.__file__).parent.rglob("*.*")]
    commands = {folder: ["audit", str(folder / "audit.yaml")] for folder in examples()}
    for folder, command in {**commands, Path("predictions"): ["demo"]}.items():
        run = REPORTS / folder.name
        page, sources = run / "report.html", [*folder.glob("*"), *package]
        if not page.exists() or page.stat().st_mtime < max(one.stat().st_mtime for one in sources):
            started = [sys.executable, "-m", "equipoise", *command]
            subprocess.run([*started, "--out", str(run), "--overwrite"], check=True, stdout=-3)


def prepare_source(_: Sphinx, name: str, source: list[str]) -> None:
    """Add generated text to pages; link examples to the gallery."""
    if name == "cli":
        source[0] = with_help(source[0])
    if name == "metrics":
        source[0] += metric_list()
    if name == "contributing":
        source[0] = with_table(source[0])
    if name == "studies":
        source[0] += f"\n{details()}\n"
    gallery = "gallery.md" if "/" not in name else "../gallery.md"
    source[0] = _OUTSIDE.sub(lambda _: f"]({gallery})", source[0])


def look_at_tutorials(app: Sphinx, error: Exception | None) -> None:
    """Fail where a tutorial, which was executed, shows no images or no chart."""
    if error is not None:
        return
    built = Path(app.outdir) / "tutorials"
    icons = (built / "index.html").read_text("utf-8").count("<svg")
    for notebook in sorted((DOCS / "tutorials").glob("*.ipynb")):
        page = (built / f"{notebook.stem}.html").read_text("utf-8")
        if page.count('<img alt="') < 2 or page.count("<svg") <= icons:
            raise ExtensionError(f"{notebook.name} shows fewer than two images, or no chart")


def look_at_search(app: Sphinx, error: Exception | None) -> None:
    """Fail where the search of the site finds no page for words of the field."""
    if error is not None:
        return
    text = (Path(app.outdir) / "searchindex.js").read_text("utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    stem = SearchEnglish({}).stem

    def pages(word: str) -> set[int]:
        entries = [index[part].get(stem(word.lower()), []) for part in ("terms", "titleterms")]
        return {
            page for entry in entries for page in (entry if isinstance(entry, list) else [entry])
        }

    missing = [
        search
        for search in SEARCHES
        if not set.intersection(*map(pages, re.findall(r"\w+", search)))
    ]
    if missing:
        raise ExtensionError(f"the search finds no page for {', '.join(missing)}")


def setup(app: Sphinx) -> None:
    """Register the steps before a build."""
    app.connect("builder-inited", write_reports)
    app.connect("build-finished", look_at_tutorials)
    app.connect("build-finished", look_at_search)
    app.connect("source-read", prepare_source)
    app.connect("autodoc-process-docstring", escape_bars)
