"""The project keeps its own rules: sizes, one version, no trace of the machine it was made on."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import equipoise

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "equipoise"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = PYPROJECT["tool"]["importlinter"]["contracts"]

MAX_FUNCTION_LINES = 60

# Someone else's code or text, shipped as it came; its size and its links are not ours.
VENDORED = re.compile(r"\.min\.js$|/vendor/|/LICENSE|^LICENSE$|/refusal_phrases\.csv$")

# One letter of each in brackets, so that this file is not what it forbids.
FORBIDDEN = {
    "a path of one machine": r"(?<![\w.])/(?:wor[k]|roo[t]|home/\w+|Users/\w+)/",
    "a registry host": r"pyp[i]\.org|python[h]osted\.org|npm[j]s\.org|deb\.debia[n]\.org",
    "talk about who wrote it": r"(?i)\b(?:as an a[i]|co-authored-b[y]"
    r"|(?:this|previous|last|next|my) sessio[n])\b",
}


@cache
def project_files():
    """Paths of the files in git; in a release archive, which has no git, those of its folders."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        names = listed.stdout.decode().rstrip("\0").split("\0")
        return tuple(name for name in names if (ROOT / name).is_file())
    folders = (ROOT / name for name in (".ci", "docs", "src", "tests", "tools"))
    paths = [*ROOT.glob("*.*"), *(path for folder in folders for path in folder.rglob("*"))]
    files = (path for path in paths if path.is_file() and "__pycache__" not in path.parts)
    return tuple(path.relative_to(ROOT).as_posix() for path in files)


def texts():
    """Return every text file of the project that is ours."""
    contents = {}
    for name in project_files():
        data = (ROOT / name).read_bytes()
        if b"\0" not in data and not VENDORED.search(name):
            contents[name] = data.decode("utf-8", errors="replace")
    return contents


def modules():
    return sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_no_file_names(kind):
    pattern = re.compile(FORBIDDEN[kind])
    matches = [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert matches == []


def code_lines(node):
    """Lines of a function without its docstring: a public one is asked for six sections of it."""
    lines = node.end_lineno - node.lineno + 1
    if ast.get_docstring(node) is None:
        return lines
    first = node.body[0]
    return lines - (first.end_lineno - first.lineno + 1)


def test_functions_are_short():
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {code_lines(node)}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and code_lines(node) > MAX_FUNCTION_LINES
    ]
    assert long == []


def test_the_version_is_written_once():
    assert "version" in PYPROJECT["project"]["dynamic"]
    assert PYPROJECT["tool"]["hatch"]["version"]["path"] == "src/equipoise/__init__.py"
    headings = re.findall(r"^## \[(\d[^\]]*)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert headings[0] == equipoise.__version__


def test_every_room_is_in_the_import_contract():
    rooms = {f"equipoise.{path.parent.name}" for path in SOURCE.glob("*/__init__.py")}
    layers = next(c["layers"] for c in CONTRACTS if c["type"] == "layers")
    assert rooms == set(layers)


def test_a_new_dependency_is_kept_out_of_the_arrays():
    import_names = {"pillow": "PIL", "pyyaml": "yaml"}
    names = dependencies("train", "images", "openvino", "ray")
    arrays = next(c for c in CONTRACTS if c["name"].startswith("core, stats and metrics"))
    allowed = {"numba", "numpy", "pyarrow", "scipy", "threadpoolctl"}
    assert {import_names.get(n, n) for n in names} - allowed <= set(arrays["forbidden_modules"])


def test_constraints_pin_every_dependency_by_version_alone():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[\w.-]+==[\w.!+]+", line)] == []
    pinned = {_normal(line.partition("==")[0]) for line in pins}
    assert {_normal(name) for name in dependencies("test", "bench")} - pinned == set()


def dependencies(*extras):
    """Names of what the core and some extras need, with what the extras that they name need."""
    optional = PYPROJECT["project"]["optional-dependencies"]
    lines = [
        *PYPROJECT["project"]["dependencies"],
        *(line for extra in extras for line in optional[extra]),
    ]
    inner = {name for line in lines for name in _own_extras(line)}
    names = {re.match(r"[\w.-]+", line)[0] for line in lines if not _own_extras(line)}
    return names | dependencies(*inner) if inner else names


def _own_extras(line):
    named = re.fullmatch(r"equipoise\[(.*)\]", line)
    return named[1].split(",") if named else []


def _normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


SKIPPING = """
import pytest

def test_allowed():
    pytest.skip("no such machine")

def test_passes():
    pass
"""


LEFT_OUT = SKIPPING + "\ndef test_left_out():\n    pytest.skip('no browser')\n"
MODULE = "import pytest\npytest.skip('no browser', allow_module_level=True)\n"


@pytest.mark.parametrize(
    ("text", "workers", "code"), [(SKIPPING, 0, 0), (LEFT_OUT, 0, 1), (MODULE, 1, 1)]
)
def test_an_unexpected_skip_fails_a_strict_run(tmp_path, text, workers, code):
    conftest = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    start = "ALLOWED_SKIPS = {\n"
    assert start in conftest
    conftest = conftest.replace(start, f'{start}    "no such machine": "nobody has one",\n')
    (tmp_path / "conftest.py").write_text(conftest, encoding="utf-8")
    (tmp_path / "test_passes.py").write_text("def test_passes():\n    pass\n")
    (tmp_path / "test_skips.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(workers), "."],
        cwd=tmp_path,
        env=os.environ | {"EQUIPOISE_STRICT_SKIPS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout
    assert ("NOT ALLOWED: test_" in done.stdout) == bool(code)
    assert ("\nallowed: test_skips.py::test_allowed" in done.stdout) == (text != MODULE)
