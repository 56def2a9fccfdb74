"""Code of other packages that fails is named, and what it can't break keeps working."""

import json
import sys
from dataclasses import replace
from itertools import count

import numpy as np
import polars as pl
import pytest
from PIL import Image

import equipoise
from equipoise import audits, metrics, models
from equipoise.audits.kind import Audit, audit_kind
from equipoise.audits.kind import unregister as remove_kind
from equipoise.audits.plugins import check_plugins, plugin_versions
from equipoise.cli.app import COMMANDS, run
from equipoise.core import InputError, PluginError
from equipoise.data import FORMATS, data_format, find_format
from equipoise.data.results import guess_reader
from equipoise.discovery import KINDS, Places, Registry
from equipoise.exports import form_of
from equipoise.metrics import registry
from equipoise.models.registry import Adapter, adapter, adapters
from test_discovery import install

METRIC = """
from equipoise import metrics
@metrics.metric(
    metrics.MetricSpec(name={name!r}, kinds=({kind!r},), definition="A number.",
                       range=(0.0, 1000.0), direction="Higher: worse.",
                       reference="an example"),
    form=metrics.{form},
)
def number({parameters}):
    {body}
"""
_NUMBERS = count()
ROWS = pl.DataFrame({"id": range(120), "g": ["f", "m"] * 60, "y": [1, 1, 0, 0] * 30})


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Return a function that installs a package with one module and forgets it in the end."""
    names = []

    def installed(package, groups, text):
        module = package.replace("-", "_")
        points = {f"equipoise.{group}": {name: f"{module}{part}"}
                  for group, (name, part) in groups.items()}  # fmt: skip
        install(tmp_path, package, points)
        (tmp_path / f"{module}.py").write_text(text)
        names.append(module)
        sys.modules.pop(module, None)

    monkeypatch.syspath_prepend(tmp_path)
    yield installed
    for name in [name for name, place in metrics.SPECS.places.items() if place.root in names]:
        registry.remove(name)
    for items in (FORMATS, adapters()):
        for name in [name for name, place in items.places.items() if place.root in names]:
            items.remove(name)


def fields(error):
    return error.noun, error.name, error.packages


FAILING = [
    ("predictions", "CountMetric", "counts, tables", "raise ValueError('broken')"),
    ("predictions", "CountMetric", "counts, tables", "return 'many'"),
    ("predictions", "CountMetric", "counts, tables", "return None"),
    ("predictions", "CountMetric", "counts", "return 1.0"),
    ("regression", "NumberMetric.of", "y_true, y_pred", "return y_true * float('nan')"),
    ("regression", "NumberMetric.of", "y_true, y_pred", "return y_true.missing"),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(FAILING)))
def test_an_audit_names_the_metric_that_fails_and_its_package(plugin, place):
    kind, form, parameters, body = FAILING[place]
    name, package = f"failing{place}", f"failing-{place}"
    text = METRIC.format(name=name, kind=kind, form=form, parameters=parameters, body=body)
    plugin(package, {"metrics": (name, "")}, text)
    rows = ROWS.with_columns(y=pl.col("y") * (2.5 if kind == "regression" else 1))
    rows = rows.with_columns(pred=pl.col("id") % 2)
    config = {
        "audit": kind, "data": {"table": rows, "id": "id", "target": "y", "groups": ["g"]},
        "models": {"m": {"table": rows, "prediction": "pred"}},
    }  # fmt: skip
    with pytest.raises(PluginError) as raised:
        audits.run(audits.parse_config(config))
    assert fields(raised.value) == ("metric", name, (package,))
    assert "switch it off" in str(raised.value)


def test_a_metric_that_fails_is_switched_off(plugin):
    text = METRIC.format(name="quitter", kind="predictions", form="CountMetric",
                         parameters="counts, tables", body="return 1 / 0")  # fmt: skip
    plugin("quitter-bias", {"metrics": ("quitter", "")}, text)
    config = {
        "audit": "predictions", "metrics": {"quitter": False},
        "data": {"table": ROWS, "id": "id", "target": "y", "groups": ["g"]},
        "models": {"m": {"table": ROWS.with_columns(p="y"), "prediction": "p"}},
    }  # fmt: skip
    result = audits.run(audits.parse_config(config))
    assert "quitter" not in {finding.metric for finding in result.findings}


def test_errors_of_built_in_metrics_stay_as_they_are():
    with pytest.raises(InputError) as raised:
        metrics.mean_error.difference([np.nan] * 3, [1.0] * 3, ["a", "b", "a"])
    assert not isinstance(raised.value, PluginError)


ADAPTER = """
from equipoise.models.registry import adapter
@adapter({name!r})
def load(target, options):
    {body}
"""


@pytest.mark.parametrize(
    ("name", "body"),
    [("five", "return 5"), ("blank", "return type('Model', (), {})()"), ("key", "raise KeyError")],
)
def test_an_adapter_that_fails_or_gives_no_model_is_named(plugin, name, body):
    plugin(f"model-{name}", {"models": (name, "")}, ADAPTER.format(name=name, body=body))
    with pytest.raises(PluginError) as raised:
        models.load_model(f"{name}:v1")
    assert fields(raised.value) == ("model adapter", name, (f"model-{name}",))


FORMAT = """
from equipoise.data import data_format
@data_format({name!r})
def read(path{options}):
    {body}
"""


@pytest.mark.parametrize(("name", "body"), [("short", "return [][0]"), ("seven", "return 7")])
def test_a_format_that_fails_or_gives_no_images_is_named(plugin, tmp_path, name, body):
    text = FORMAT.format(name=name, options="", body=body)
    plugin(f"format-{name}", {"formats": (name, "")}, text)
    with pytest.raises(PluginError) as raised:
        find_format(name).load(tmp_path)
    assert fields(raised.value) == ("data format", name, (f"format-{name}",))


def test_an_option_of_a_format_has_the_type_of_its_default(plugin):
    text = FORMAT.format(name="typed", options=", *, ending='.png', skip=1", body="pass")
    plugin("format-typed", {"formats": ("typed", "")}, text)
    options = find_format("typed").check_options({"ending": ".jpg", "skip": 2})
    assert options == {"ending": ".jpg", "skip": 2}
    with pytest.raises(InputError, match=r"options\.ending"):
        find_format("typed").check_options({"ending": 1})


@pytest.mark.parametrize("option", ["ending", "ending=None", "ending: Nowhere", "ending: object()"])
def test_an_option_of_a_format_without_a_type_is_refused_with_the_format(plugin, option):
    name = f"untyped{len(option)}"
    text = "from __future__ import annotations\n" + FORMAT.format(
        name=name, options=f", *, {option}", body="pass"
    )
    plugin(f"format-{name}", {"formats": (name, "")}, text)
    with pytest.raises(PluginError) as raised:
        find_format(name)
    assert fields(raised.value) == ("data format", name, (f"format-{name}",))


def test_the_command_line_names_the_package_of_a_command_that_fails(plugin, capsys):
    text = "import click\n@click.command('breaks')\ndef breaks():\n    {}['key']\n"
    plugin("command-breaks", {"commands": ("breaks", ":breaks")}, text)
    assert run(["breaks"]) == 2
    err = capsys.readouterr().err
    assert "command-breaks" in err
    assert "report it" not in err


@pytest.mark.parametrize(("name", "value"), [("wrong", "5"), ("key", "{}['key']")])
def test_a_form_of_export_that_fails_or_gives_no_files_is_named(plugin, name, value):
    text = f"from equipoise.exports import Form\nFORM = Form('A form', lambda run: {value})\n"
    plugin(f"export-{name}", {"exports": (name, ":FORM")}, text)
    with pytest.raises(PluginError) as raised:
        form_of(name).write(None)
    assert fields(raised.value) == ("form of export", name, (f"export-{name}",))


@pytest.mark.parametrize("kind", ["predictions", "regression"])
def test_the_notes_of_a_run_name_a_metric_that_cannot_be_imported(plugin, kind):
    plugin(f"absent-{kind}", {"metrics": (f"absent_{kind}", "")}, "import no_such_library\n")
    rows = ROWS.with_columns(y=pl.col("id") % 3 + 0.5, pred=pl.col("id") % 2 + 0.5)
    config = {
        "audit": kind, "data": {"table": rows, "id": "id", "target": "y", "groups": ["g"]},
        "models": {"m": {"table": rows, "prediction": "pred", **(
            {"open_vocabulary": True} if kind == "predictions" else {}
        )}},
    }  # fmt: skip
    notes = audits.run(audits.parse_config(config)).manifest.notes
    assert any(f"absent-{kind}" in note for note in notes)


def test_a_metric_of_a_plugin_is_an_attribute(plugin):
    text = METRIC.format(
        name="own_number", kind="predictions", form="CountMetric", parameters="counts, tables",
        body="return tables.sum(axis=(1, 2))",
    )  # fmt: skip
    plugin("own-bias", {"metrics": ("own_number", "")}, text)
    from equipoise.metrics import own_number

    assert metrics.own_number is own_number is metrics.function_of("own_number")
    assert own_number([0, 1], [0, 1], ["a", "b"], resampling=None).value == 2
    with pytest.raises(AttributeError) as raised:
        _ = metrics.no_such_number
    assert raised.value.name == "no_such_number"


def define(names, module="a_notebook"):
    """Run a cell of a notebook."""
    text = METRIC.format(name="cell", kind="predictions", form="CountMetric",
                         parameters="counts, tables", body=f"return {names}")  # fmt: skip
    space = {"__name__": module}
    exec(text, space)
    return space["number"]


def test_a_cell_of_a_notebook_that_runs_again_replaces_its_metric():
    rows = [0, 1], [0, 1], ["a", "b"]
    try:
        define("tables.sum(axis=(1, 2))")
        again = define("2 * tables.sum(axis=(1, 2))")
        assert metrics.function_of("cell") is again
        assert metrics.evaluate(*rows, ["cell"], resampling=None)["cell"].value == 4
        with pytest.raises(PluginError) as raised:
            define("tables.sum(axis=(1, 2))", "another_notebook")
        assert raised.value.name == "cell"
        assert metrics.function_of("cell") is again
    finally:
        registry.remove("cell")


def test_a_cell_of_a_notebook_that_runs_again_replaces_formats_adapters_and_kinds():
    try:
        for number in (1, 2):

            @data_format("cell")
            def read(path, *, first=number): ...

            @adapter("cell")
            def load(target, options): ...

            @audit_kind("cell")
            class Cell(Audit):
                load = designs = measure = None

        assert find_format("cell").check_options({"first": 5}) == {"first": 5}
        assert find_format("cell").options().first == 2
        assert isinstance(adapters()["cell"], Adapter)
        # Another function of the same module is another format.
        with pytest.raises(PluginError):
            data_format("cell")(lambda path: None)
        with pytest.raises(PluginError):
            KINDS.add("cell", "another_notebook")
    finally:
        FORMATS.remove("cell")
        adapters().remove("cell")
        remove_kind("cell")


def test_a_file_of_a_scanned_folder_without_its_object_is_named(tmp_path, monkeypatch):
    (tmp_path / "stray.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    places = Places("reader of results", "equipoise.results", tmp_path, "*.py", "{name}:READER")
    with pytest.raises(PluginError) as raised:
        places["stray"].load(object)
    assert fields(raised.value) == ("reader of results", "stray", ("equipoise",))
    assert "stray:READER" in str(raised.value)
    sys.modules.pop("stray")


def test_a_file_without_its_object_spoils_no_other_command(tmp_path, monkeypatch, capsys):
    (tmp_path / "stray.py").write_text("")
    places = Places("thing", "equipoise.things", tmp_path, "*.py", "equipoise.cli:{name}_object")
    monkeypatch.setattr("equipoise.cli.app.COMMANDS", {**COMMANDS, **places})
    monkeypatch.setattr("equipoise.data.results.READERS", places)
    assert run(["--help"]) == 0
    assert "stray" in capsys.readouterr().out
    assert run(["stray"]) == 2
    assert "equipoise.cli:stray_object" in capsys.readouterr().err.replace("\n  ", "")
    (tmp_path / "rows.marks").write_text("{}")
    assert guess_reader(tmp_path / "rows.marks") is None


def test_a_file_that_cannot_be_imported_is_named_and_spoils_no_other(tmp_path, monkeypatch):
    folder = tmp_path / "scanned"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "broken.py").write_text("import no_such_library\n")
    (folder / "sound.py").write_text("from scanned import ITEMS\nITEMS.add('sound', 1, __name__)\n")
    monkeypatch.syspath_prepend(tmp_path)
    import scanned

    scanned.ITEMS = Registry("item", "equipoise.items", "scanned", folder)
    assert scanned.ITEMS.find("sound") == 1
    assert [*scanned.ITEMS] == ["sound"]
    assert fields(scanned.ITEMS.broken["broken"]) == ("item", "broken", ("equipoise",))
    with pytest.raises(PluginError, match=r"scanned\.broken .*no_such_library"):
        scanned.ITEMS.find("broken")
    with pytest.raises(KeyError):
        scanned.ITEMS.find("nowhere")
    assert "broken" in scanned.ITEMS.left_out


@pytest.mark.parametrize("items", [metrics.SPECS, FORMATS, adapters()])
def test_every_file_of_the_package_can_be_imported(items):
    files = {name for name, error in items.broken.items() if "equipoise" in error.packages}
    assert not files


@pytest.fixture
def lost(plugin, tmp_path):
    """Return a run with a metric of a package that is gone, and the metric's name."""
    # A module is imported once, so each test has its own.
    name = f"lost_number_{next(_NUMBERS)}"
    plugin(
        name.replace("_", "-"), {"metrics": (name, "")},
        METRIC.format(
            name=name, kind="predictions", form="CountMetric", parameters="counts, tables",
            body="return tables[:, 0].sum(axis=1)",
        ),
    )  # fmt: skip
    equipoise.audit(ROWS.with_columns(pred=1 - pl.col("y")), target="y", groups="g").save(
        tmp_path / "run"
    )
    registry.remove(name)
    (tmp_path / f"{name}-1.0.dist-info" / "entry_points.txt").write_text("")
    # Entry points are read again where the path of imports is another.
    sys.path.append(str(tmp_path / "nowhere"))
    yield tmp_path / "run", name
    sys.path.remove(str(tmp_path / "nowhere"))


def test_a_run_records_the_packages_of_its_plugins(lost):
    folder, name = lost
    versions = json.loads((folder / "manifest.json").read_text())["versions"]
    assert versions[f"metric {name}"] == f"{name.replace('_', '-')} 1.0"


@pytest.mark.parametrize("command", ["check", "compare", "report"])
def test_commands_name_the_package_that_a_run_lacks(lost, command, capsys, tmp_path):
    folder, name = lost
    page = (folder / "report.html").read_bytes()
    further = {"check": ["--min", "accuracy=0"], "compare": ["--out", str(tmp_path / "compared")]}
    assert run([command, str(folder), *further.get(command, ())]) == 2
    err = capsys.readouterr().err
    assert repr(name) in err
    assert f"To do: install {name.replace('_', '-')} 1.0" in err
    assert (folder / "report.html").read_bytes() == page


def test_a_run_lacks_nothing_that_is_installed():
    result = equipoise.audit(ROWS.with_columns(pred="y"), target="y", groups="g")
    check_plugins(result.manifest)
    versions = {"metric nothing": "module", "data format no": "a-format 1.0"}
    with pytest.raises(PluginError) as raised:
        check_plugins(replace(result.manifest, versions=versions))
    assert fields(raised.value) == ("metric", "nothing", ("",))
    del versions["metric nothing"]
    check_plugins(replace(result.manifest, versions=versions), config=False)
    with pytest.raises(PluginError) as raised:
        check_plugins(replace(result.manifest, versions=versions))
    assert fields(raised.value) == ("data format", "no", ("a-format",))


def test_built_in_parts_of_a_configuration_are_no_plugins():
    resolved = {
        "audit": "predictions", "data": {"images": [{"format": "coco"}]},
        "models": {"a": {"model": "hf:x"}},
    }  # fmt: skip
    find_format("coco")
    assert plugin_versions(resolved, ["accuracy"]) == {}


def test_a_plan_and_an_audit_without_pillow_name_the_extra(tmp_path, monkeypatch, capsys):
    pytest.importorskip("onnxruntime")
    from equipoise.evidence import pictures
    from equipoise.planted import scenes

    for place in range(4):
        Image.new("RGB", (8, 8)).save(tmp_path / f"{place}.png")
    model = f"onnx:{scenes.WEIGHTS / 'cnn-null.onnx'}"
    labels = models.load_model(model).labels
    rows = "".join(f"{n},{n}.png,{'ab'[n % 2]},{labels[n // 2]}\n" for n in range(4))
    (tmp_path / "rows.csv").write_text(f"id,file,g,label\n{rows}")
    (tmp_path / "audit.yaml").write_text(json.dumps({
        "audit": "predictions", "data": {
            "images": {"table": "rows.csv", "id": "id", "path": "file"}, "target": "label",
            "groups": ["g"],
        },
        "models": {"m": {"model": model}},
    }))  # fmt: skip
    monkeypatch.setattr(pictures, "find_spec", lambda _: None)
    for command in (["plan"], ["audit", "--out", str(tmp_path / "run")]):
        assert run([command[0], str(tmp_path / "audit.yaml"), *command[1:]]) == 2
        assert "[images]" in capsys.readouterr().err
