"""The structure of the package: one-way imports, private names, and rooms that know no names."""

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from equipoise import metrics
from equipoise.audits.kind import audit_of
from equipoise.data import FORMATS
from equipoise.discovery import KINDS
from equipoise.models.registry import adapters

SOURCE = Path(__file__).resolve().parent.parent / "src"
LIBRARIES = {"diffusers", "onnx", "onnxruntime", "open_clip", "openvino", "timm", "torch",
             "transformers"}  # fmt: skip
AUDITS = SOURCE / "equipoise" / "audits"
NAMELESS = [
    *sorted((SOURCE / "equipoise" / "report").glob("*.py")),
    *(
        AUDITS / f"{name}.py"
        for name in (
            "kind",
            "manifest",
            "measuring",
            "opening",
            "pages",
            "planning",
            "running",
        )
    ),
]


@cache
def modules():
    """Return every module of the package, parsed, by its dotted name."""
    paths = {path.relative_to(SOURCE): path for path in SOURCE.rglob("*.py")}
    return {
        ".".join(name.with_suffix("").parts).removesuffix(".__init__"): ast.parse(path.read_text())
        for name, path in paths.items()
    }


def imports(module):
    """Yield (module, name) of every import from the package: in functions and for types, too."""
    for node in ast.walk(modules()[module]):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("equipoise"):
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            names = (alias.name for alias in node.names)
            yield from ((name, "") for name in names if name.startswith("equipoise"))


@cache
def files(module):
    """Return the modules that a module imports."""
    return {
        f"{source}.{name}" if f"{source}.{name}" in modules() else source
        for source, name in imports(module)
    } - {module}


def test_no_file_imports_another_in_a_circle():
    # The root's lazy names import no room until they are used.
    graph = {module: files(module) for module in modules() if module != "equipoise"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        pytest.fail(" <- ".join(circle.args[1]))


def test_no_file_imports_a_private_name_of_another():
    private = [
        f"{module}: {source}.{name}"
        for module in modules()
        for source, name in imports(module)
        if name.startswith("_") and not name.startswith("__")
    ]
    assert private == []


def test_no_kind_of_audit_is_imported_by_another_or_by_shared_code():
    kinds = {place.value for place in KINDS.values()}
    foreign = [
        f"{module}: {source}"
        for module in modules()
        for source, _ in imports(module)
        for kind in kinds
        if module.startswith("equipoise.audits.")
        and f"{source}.".startswith(f"{kind}.")
        and not f"{module}.".startswith(f"{kind}.")
    ]
    assert foreign == []


def test_every_folder_is_a_kind_or_a_family_of_kinds():
    folders = {path.parent for path in AUDITS.glob("*/**/*.py")}
    families = [folder for folder in folders if [*folder.glob("*/audit.py")]]
    assert sorted(KINDS) == sorted(folder.name for folder in folders if folder not in families)
    for kind in KINDS:
        assert audit_of(kind).name == kind


@cache
def imported():
    """Return the modules that another module imports, and packages."""
    packages = {module.rpartition(".")[0] for module in modules()}
    return packages.union(*map(files, modules()))


def lost(package, registering):
    """Return files of a scanned folder that register nothing and that no other file imports."""
    scanned = {module for module in modules() if module.startswith(f"{package}.")}
    return sorted(scanned - registering - imported())


@pytest.mark.parametrize(
    "registries",
    [(FORMATS,), (metrics.SPECS,), (adapters(), adapters(makes_images=True))],
    ids=["formats", "metrics", "models"],
)
def test_no_file_of_a_scanned_folder_is_lost(registries):
    assert all(len(registry) for registry in registries)
    # Code of a test may have registered something too.
    registering = set().union(*(registry.modules for registry in registries)) & {*modules()}
    package = registries[0].package
    assert lost(package, registering) == []
    # What only the scan imports would be lost without its registration.
    only_scanned = sorted(registering - imported())
    assert lost(package, registering - {*only_scanned}) == only_scanned
    assert only_scanned or package != "equipoise.models"


def _public(body):
    """Yield the public functions of a module and the public methods of its public classes."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _public(node.body)
        elif isinstance(node, ast.FunctionDef) and (
            not node.name.startswith("_") or node.name in ("__init__", "__call__")
        ):
            yield node


def annotated(name):
    """Count a name in the annotations of public functions."""
    functions = [node for tree in modules().values() for node in _public(tree.body)]
    annotations = [
        annotation
        for function in functions
        for annotation in (function.returns, *(
            argument.annotation
            for argument in ast.walk(function.args)
            if isinstance(argument, ast.arg)
        ))
        if annotation is not None
    ]  # fmt: skip
    nodes = [
        node
        for annotation in annotations
        for node in ast.walk(annotation)
        if isinstance(node, ast.Name)
    ]
    return sum(node.id == name for node in nodes)


@pytest.mark.parametrize(("name", "limit"), [("Any", 100), ("object", 20)])
def test_public_functions_have_real_types(name, limit):
    assert annotated("str") > 1000
    assert annotated(name) <= limit


@pytest.mark.parametrize("path", NAMELESS, ids=lambda path: path.stem)
def test_report_and_base_name_no_kind_metric_or_library(path):
    names = {*metrics.SPECS, *KINDS, *LIBRARIES}
    named = [
        f"line {node.lineno}: {node.value}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in names
    ]
    assert named == []


READERS = {
    "np.load": ["equipoise.data.arrays"],
    "np.loadtxt": [],
    "np.fromfile": [],
    "zipfile.ZipFile": ["equipoise.data.arrays", "equipoise.data.archives"],
    "json.load": [],
    "json.loads": ["equipoise.core.files"],
    "pickle.load": [],
}
"""What opens a file of unknown origin, and the modules that bound it and name its faults."""
_OF_A_FILE = ("read_bytes(", "read_text(", "read_regular(", "metadata")


def _reads(node):
    """Return the reader that a call names; json.loads counts where its text is of a file."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    name = f"{getattr(node.func.value, 'id', '')}.{node.func.attr}"
    text = ast.unparse(node) if name == "json.loads" else ""
    return name if not text or any(part in text for part in _OF_A_FILE) else None


def test_files_of_unknown_origin_are_read_in_one_place():
    elsewhere = [
        (module, name)
        for module, tree in modules().items()
        if not module.startswith("equipoise.planted")  # its files come with the package
        for name in map(_reads, ast.walk(tree))
        if name in READERS and module not in READERS[name]
    ]
    assert elsewhere == []
