"""`tools.mutants` changes what can change a number, and tells caught mutants from survivors."""

import ast
import json
import shutil
import subprocess
from pathlib import Path

from tools import mutants, mutations

ROOT = Path(mutants.__file__).parents[1]

SOURCE = '''
"""A docstring of 3 words."""
from typing import Literal
Number = int | float

def share(n: Literal[1, 2], values: "int | None", *, axis: int = 0) -> float:
    """Return 1 or more."""
    if not n <= 2 or isinstance(values, int | str):
        raise ValueError(f"{n + 1} is above" + str(2))
    n += min(n, 4)
    return values.sum(axis=-1) / n
'''


def test_sites_are_operators_constants_and_functions_of_the_code(tmp_path):
    (tmp_path / "share.py").write_text(SOURCE)
    sites = mutations.find_sites(tmp_path, ["."])
    found = {(one.kind, " ".join(one.before.split()), one.after) for site in sites for one in site}
    assert found == {
        ("constant", "0", "1"),
        ("constant", "0", "(-1)"),
        ("boolean", "not n <= 2 or isinstance(values, int | str)",
         "(not n <= 2 and isinstance(values, int | str))"),
        ("dropped operator", "not n <= 2", "(n <= 2)"),
        ("comparison", "n <= 2", "(n < 2)"),
        ("comparison", "n <= 2", "(n >= 2)"),
        ("constant", "2", "3"),
        ("constant", "2", "(1)"),
        ("arithmetic", "n += min(n, 4)", "n -= min(n, 4)"),
        ("function", "min", "max"),
        ("constant", "4", "5"),
        ("constant", "4", "(3)"),
        ("arithmetic", "values.sum(axis=-1) / n", "(values.sum(axis=-1) * n)"),
        ("keyword axis", "-1", "0"),
    }  # fmt: skip
    for site in sites:
        for one in site:
            assert ast.parse(one.apply(SOURCE.encode())) is not None
    assert mutations.draw(sites, 5, 6) == mutations.draw(sites, 5, 6)
    assert mutations.draw(sites, 5, 6) != mutations.draw(sites, 6, 6)


def test_a_tested_mistake_is_caught_and_an_untested_one_survives(tmp_path, monkeypatch):
    tested = "from equipoise.stats.low import low\n\ndef test_low():\n    assert low([4, 2]) == 2\n"
    files = {
        "src/equipoise/__init__.py": "",
        "src/equipoise/stats/low.py": "def low(values):\n    return min(values)\n",
        "src/equipoise/stats/odd.py": "def odd():\n    return True\n",
        "tests/stats/test_low.py": tested,
        "pyproject.toml": "[tool.pytest]\n",
    }
    project = tmp_path / "project"
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    shutil.copytree(ROOT / "tools", project / "tools")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(project)]
    for command in (["init", "-q"], ["add", "src", "tests"], ["commit", "-q", "-m", "Add two"]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.setattr(mutants, "ROOT", project)
    store = tmp_path / "mutants.json"
    options = ["--seed", "1", "--count", "2", "--store", str(store), "--work", str(tmp_path / "w")]
    mutants.main(options)
    record = json.loads(store.read_text(encoding="utf-8"))
    outcomes = {(one["file"], one["after"]): one["outcome"] for one in record["mutants"]}
    assert outcomes == {
        ("src/equipoise/stats/low.py", "max"): "caught",
        ("src/equipoise/stats/odd.py", "False"): "survived",
    }
    assert (record["sites"], record["caught"], record["share_caught"]) == (2, 1, 0.5)
    assert (project / "src/equipoise/stats/low.py").read_text().count("min") == 1
    before = store.read_bytes()
    mutants.main(options)
    assert store.read_bytes() == before
