"""Build of the documentation: `make docs`."""

import re
import subprocess
import sys
from pathlib import Path
from typing import cast

import yaml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

import equipoise

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))  # for tools
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

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
# Tables of data are shown as they are, and charts as SVG.
suppress_warnings = ["misc.highlighting_failure", "mystnb.unknown_mime_type"]

html_theme = "pydata_sphinx_theme"
html_title = f"equipoise {version}"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
html_extra_path = ["_generated"]
html_show_sourcelink = False

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
    """List the reports in the gallery and all metrics; links to examples go to the gallery."""
    if name == "metrics":
        from tools.metric_page import metric_list

        source[0] += metric_list()
    if name == "gallery":
        source[0] += DEMO + "".join(_entry(folder) for folder in examples())
    gallery = "gallery.md" if "/" not in name else "../gallery.md"
    source[0] = _OUTSIDE.sub(lambda _: f"]({gallery})", source[0])


FRAME = """<p><a href="reports/{0}/report.html">Open the report</a></p>
<iframe src="reports/{0}/report.html" title="Report of {0}" loading="lazy"
 style="width:100%;height:26rem;border:1px solid #8888"></iframe>
"""
DEMO = f"""
## Predictions

{FRAME.format("predictions")}
Six classifiers with planted bias: `equipoise demo`. How to write one:
[audits of predictions](audits/predictions.md).
"""


def _entry(folder: Path) -> str:
    config = (folder / "audit.yaml").read_text(encoding="utf-8")
    kind = yaml.safe_load(config)["audit"]
    return (
        f"\n## {folder.name.replace('_', ' ').capitalize()}\n\n"
        f"{FRAME.format(folder.name)}\n"
        f":::{{dropdown}} Configuration\n```yaml\n{config}```\n:::\n\n"
        f"How to write one: [audits of {kind}](audits/{kind}.md).\n"
    )


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


def setup(app: Sphinx) -> None:
    """Register the steps before a build."""
    app.connect("builder-inited", write_reports)
    app.connect("build-finished", look_at_tutorials)
    app.connect("source-read", prepare_source)
    app.connect("autodoc-process-docstring", escape_bars)
