"""Adding is dropping a file in: the package's folders and other packages are searched."""

import json
import shutil
import sys
import tomllib
from pathlib import Path

import click
import numpy as np
import polars as pl
import pytest
import yaml
from PIL import Image

import equipoise
from alone import alone
from equipoise import metrics, models
from equipoise.audits.config import parse_config
from equipoise.audits.kind import audit_of
from equipoise.cli.app import COMMANDS, run
from equipoise.core import EquipoiseError, PluginError
from equipoise.data import FORMATS, find_format
from equipoise.data.results import READERS, ResultsReader, reader_of
from equipoise.discovery import KINDS
from equipoise.exports import FORMS, Form
from equipoise.models.registry import adapters
from equipoise.studies import STUDIES
from equipoise.studies.study import read_study
from equipoise.studies.works import WORKS

PLUGIN = Path(__file__).parent / "plugin"


def install(folder, name, entry_points):
    """Write what an installer writes of a package beside its files."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    sections = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in points.items())
        for group, points in entry_points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(sections))


# All steps take one start of Python.
EVERYTHING = """
import json, os, sys
from click.testing import CliRunner
from equipoise.cli.app import app

def command(*arguments):
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, (arguments, done.output, done.exception)
    return done.output

os.chdir(sys.argv[1])
answers = {"help": command("--help")}
answers["kind"] = command("new", "ratings.yaml", "--audit", "ratings")
answers["kind audited"] = json.loads(command("audit", "ratings.yaml", "--out", "rated", "--json"))
answers["gate"] = CliRunner().invoke(app, ["check", "rated"]).exit_code
answers["metric"] = json.loads(command("metrics", "--json"))["wrong_gap"]["title"]
command("audit", "seen.yaml", "--out", "seen", "--json")
answers["format"] = json.load(open("seen/manifest.json"))["counts"]["labels"]
findings = json.load(open("seen/findings.json"))
answers["metrics of model"] = [(row["model"], row["metric"]) for row in findings]
answers["studies"] = [*json.loads(command("new", "--study", "list", "--json"))["studies"]]
command("new", "shapes.yaml", "--study", "study-of-shapes")
answers["study"] = command("plan", "shapes.yaml")
os.makedirs("pictures", exist_ok=True)
folder = ["new", "other.yaml", "--study", "study-of-shapes", "--data", "pictures"]
answers["study with a folder"] = type(CliRunner().invoke(app, folder).exception).__name__
answers["command"] = command("tally", "rated")
answers["export"] = command("export", "rated", "--as", "verdicts")
answers["results"] = command("quick", "eye.marks", "--out", "marked")
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder, site = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("site")
    points = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]["entry-points"]
    shutil.copytree(PLUGIN / "my_bias", site / "my_bias")
    install(site, "my-bias", points)
    rows = [(i, "yes" if i % 10 < (7 if i % 2 else 3) else "no", "ab"[i % 2]) for i in range(400)]
    (folder / "ratings.csv").write_text(
        "row,rating,group\n" + "".join(f"{i},{rating},{group}\n" for i, rating, group in rows)
    )
    for i in range(80):
        grey = np.full((4, 4, 3), 220 if i % 2 else 30, np.uint8)
        Image.fromarray(grey).save(folder / f"p{i}.png")
    lines = [f"p{i} {'fm'[i // 40]} {('dark', 'bright')[i % 3 % 2]}" for i in range(80)]
    (folder / "people.txt").write_text("\n".join(lines))
    config = {
        "audit": "predictions",
        "data": {
            "images": {"format": "lines", "files": "people.txt", "root": "."},
            "target": "label",
            "groups": ["gender"],
        },
        "models": {"eye": {"model": "brightness:v1"}},
        "gate": [{"metric": "wrong_gap", "max": 0.9}],
    }
    (folder / "seen.yaml").write_text(yaml.safe_dump(config))
    shapes = [f"{i},{'square' if i % 2 else 'heart'},{'red' if i % 3 else 'blue'},square,heart"
              for i in range(120)]  # fmt: skip
    (folder / "shapes.csv").write_text("\n".join(["id,shape,colour,first,second", *shapes]))
    marks = ({"picture": str(i), "mark": "ab"[i % 3 % 2], "right": "ab"[i % 2],
              "about": {"gender": "fm"[i // 60]}} for i in range(120))  # fmt: skip
    (folder / "eye.marks").write_text("".join(json.dumps(row) + "\n" for row in marks))
    code = f"import sys; sys.path[:0] = {[str(site)]!r}\n{EVERYTHING}"
    done = alone(code, folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_kind_of_another_package_is_audited(answers):
    assert answers["kind"].startswith("wrote ratings.yaml\n")
    assert [row["metric"] for row in answers["kind audited"]["findings"]] == ["rating_gap"]
    assert answers["gate"] == 1


def test_a_model_a_format_and_a_metric_of_another_package_meet_in_one_audit(answers):
    assert answers["metric"] == "Gap of wrong predictions"
    assert answers["format"]["rows"] == 80
    assert ["eye", "wrong_gap"] in answers["metrics of model"]


def test_a_study_of_another_package_is_listed_and_starts(answers):
    assert answers["studies"] == [*STUDIES, "study-of-shapes"]
    assert "all colours" in answers["study"]
    # It needs no folder of data, and takes none.
    assert answers["study with a folder"] == "ConfigError"


def test_a_command_of_another_package_is_listed_and_runs(answers):
    assert "\n  tally " in answers["help"]
    assert answers["command"] == "disparity: 1\n"


def test_a_form_of_export_of_another_package_is_written(answers):
    assert answers["export"].startswith("rating_gap: ")


def test_a_reader_of_results_of_another_package_reads_them(answers):
    assert "results: marks" in answers["results"]


GROUPS = (
    "kinds", "models", "formats", "results", "metrics", "studies", "exports", "commands",
)  # fmt: skip


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Install a package whose modules can't be imported."""
    points = {f"equipoise.{group}": {"broken": "broken_bias.module:thing"} for group in GROUPS}
    install(tmp_path, "broken-bias", points)
    (tmp_path / "broken_bias").mkdir()
    (tmp_path / "broken_bias" / "__init__.py").write_text("")
    (tmp_path / "broken_bias" / "module.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    ("noun", "use"),
    [
        ("kind of audit", lambda: audit_of("broken")),
        ("model adapter", lambda: models.load_model("broken:v1")),
        ("adapter of image generators", lambda: models.load_generator("broken:v1")),
        ("data format", lambda: find_format("broken")),
        ("reader of results", lambda: reader_of("broken")),
        ("metric", lambda: metrics.SPECS["broken"]),
        ("study", lambda: read_study("broken")),
        ("command", lambda: COMMANDS["broken"].load(click.Command)),
    ],
)
def test_a_package_that_cannot_be_imported_is_named_where_it_is_used(noun, use):
    with pytest.raises(PluginError, match="no_such_library") as raised:
        use()
    error = raised.value
    assert (error.noun, error.name, error.packages) == (noun, "broken", ("broken-bias",))


@pytest.mark.usefixtures("broken")
def test_a_package_that_cannot_be_imported_spoils_nothing_else(capsys):
    assert "coco" in FORMATS
    assert audit_of("predictions").name == "predictions"
    assert "hf" in {*adapters()}
    listed = {}
    for arguments in (("--help",), ("metrics",), ("new", "--study", "list")):
        code = run([*arguments])
        listed[arguments[0]], err = capsys.readouterr()
        assert code == 0
        # The help has one line for it.
        assert "broken-bias" in err or arguments == ("--help",)
    assert "broken" in listed["--help"]
    assert "skewsize" in listed["metrics"]
    assert "chen-dou" in listed["new"]
    code, err = run(["broken", "--option", "x"]), capsys.readouterr().err
    assert (code, err.count("error: ")) == (2, 1)
    assert "broken-bias" in err
    rows = pl.DataFrame({"id": range(120), "g": ["f", "m"] * 60, "y": [1, 1, 0, 0] * 30})
    result = equipoise.audit(rows.with_columns(pred=1 - pl.col("y")), target="y", groups="g")
    assert any("broken-bias" in note for note in result.manifest.notes)


PREDICTIONS = {
    "audit": "predictions", "data": {"table": "t", "id": "i", "target": "y", "groups": ["g"]},
    "models": {"m": {"table": "t", "prediction": "p"}},
}  # fmt: skip


@pytest.mark.parametrize("statement", ["raise RuntimeError('no use')", "raise SystemExit(3)"])
def test_a_package_that_fails_or_quits_is_named(tmp_path, monkeypatch, statement):
    package = f"quitting{len(statement)}"
    points = {f"equipoise.{group}": {package: package} for group in GROUPS}
    install(tmp_path, package, points)
    (tmp_path / f"{package}.py").write_text(f"{statement}\n")
    monkeypatch.syspath_prepend(tmp_path)
    uses = (
        lambda: find_format(package), lambda: models.load_model(f"{package}:v1"),
        lambda: audit_of(package), lambda: metrics.SPECS.find(package),
    )  # fmt: skip
    for use in uses:
        # It is imported once, and its error stays.
        for _ in range(2):
            with pytest.raises(PluginError) as raised:
                use()
            assert (raised.value.name, raised.value.packages) == (package, (package,))
    named = (
        lambda: find_format("nowhere"), lambda: models.load_model("nowhere:v1"),
        lambda: parse_config({**PREDICTIONS, "metrics": {package: False}}),
        lambda: parse_config({**PREDICTIONS, "models": {"m": {"model": "nowhere:v1"}}}),
    )  # fmt: skip
    for use in named:
        with pytest.raises(EquipoiseError, match=package):
            use()


def twin(tmp_path, monkeypatch, group, name, text):
    """Install a package that adds something of a name that is taken."""
    module = f"twin_{group}"
    install(tmp_path, f"twin-{group}", {f"equipoise.{group}": {name: module}})
    (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)


FORMAT = "from equipoise.data import data_format\ndata_format('coco')(lambda path: None)\n"
ADAPTER = (
    "from equipoise.models.registry import adapter\nadapter('hf')(lambda target, options: None)\n"
)


@pytest.mark.parametrize(
    ("group", "name", "text", "use"),
    [
        ("formats", "coco", FORMAT, lambda: find_format("coco")),
        ("formats", "cifar", "", lambda: find_format("cifar")),
        ("models", "hf", ADAPTER, lambda: models.load_model("hf:v1")),
        ("kinds", "predictions", "", lambda: KINDS["predictions"]),
        ("studies", "chen-dou", "", lambda: STUDIES["chen-dou"]),
        ("exports", "card", "", lambda: FORMS["card"]),
        ("results", "helm", "", lambda: READERS["helm"]),
        ("commands", "audit", "", lambda: COMMANDS["audit"]),
    ],
)
def test_two_of_one_name_are_an_error_that_names_both(
    tmp_path, monkeypatch, group, name, text, use
):
    sys.modules.pop(f"twin_{group}", None)
    twin(tmp_path, monkeypatch, group, name, text)
    with pytest.raises(PluginError) as raised:
        use()
    assert (raised.value.name, raised.value.packages) == (name, ("equipoise", f"twin-{group}"))


def test_a_metric_of_a_name_that_is_taken_is_left_out(tmp_path, monkeypatch):
    text = (
        "from equipoise.metrics import SPECS\nfrom dataclasses import replace\n"
        "from equipoise.metrics import metric\n"
        "metric(replace(SPECS['phi'], title='Mine'))(lambda: None)\n"
    )
    twin(tmp_path, monkeypatch, "metrics", "phi", text)
    assert metrics.SPECS.broken["phi"].packages == ("equipoise", "twin-metrics")
    assert {name: spec.title for name, spec in metrics.SPECS.items()}["phi"] != "Mine"
    with pytest.raises(PluginError):
        metrics.SPECS.find("phi")


def test_a_module_that_registers_something_else_is_an_error(tmp_path, monkeypatch):
    install(tmp_path, "other-bias", {"equipoise.formats": {"mine": "other_bias"}})
    (tmp_path / "other_bias.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginError) as raised:
        find_format("mine")
    assert raised.value.packages == ("other-bias",)


def test_every_file_of_commands_forms_and_studies_is_one():
    for name, place in COMMANDS.items():
        assert place.load(click.Command).name == name
    assert all(isinstance(place.load(Form), Form) for place in FORMS.values())
    readers = [place.load(ResultsReader) for place in READERS.values()]
    assert all(isinstance(reader, ResultsReader) for reader in readers)
    files = {path.name for path in STUDIES.folder.iterdir() if path.suffix not in (".py", "")}
    assert files == {f"{name}.yaml" for name in STUDIES}
    works = {path.name for path in (STUDIES.folder / "published").iterdir()}
    assert works == {f"{name}.yaml" for name in WORKS}
