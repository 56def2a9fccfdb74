"""SHA-256 of the source files of modules, and of the local modules that they import."""

import ast
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.machinery import PathFinder
from importlib.util import find_spec, resolve_name
from itertools import accumulate
from pathlib import Path

from equipoise.models.info import sha256_of

_INSTALLED = frozenset({"site-packages", "dist-packages"})


def source_digests(modules: Iterable[str]) -> dict[str, str]:
    """Return SHA-256 of modules' source files, and of local modules they import.

    An import is found in the source, wherever it stands, and no module is imported for it. A module
    is local when it belongs to a package of `modules`, or is not installed. Imports by a computed
    name are not found.

    Parameters
    ----------
    modules : iterable of str
        Names of imported modules.

    Returns
    -------
    mapping of str to str
        By the name of the module.
    """
    # A container of torch, such as Sequential, has no code of the user; torch has some 2,000 files.
    roots = {name for name in modules if name.partition(".")[0] != "torch"}
    digests = dict[str, str]()
    tops = {root.partition(".")[0] for root in roots} - {"equipoise"}
    pending, visited = [*roots], set[str]()
    while pending:
        name = pending.pop()
        if name in visited:
            continue
        visited.add(name)
        top = name.partition(".")[0]
        is_local = name in roots or top in tops
        if not is_local and (
            top in sys.stdlib_module_names or top == "equipoise" or _installed(top)
        ):
            continue
        path = _file(name)
        if path is not None and (is_local or not _installed(name)):
            digests[name] = sha256_of(path)
            pending += _imports(name, path)
    return dict(sorted(digests.items()))


def _installed(name: str) -> bool:
    path = _file(name)
    return path is not None and not _INSTALLED.isdisjoint(path.parts)


def _file(name: str) -> Path | None:
    """Return the file of a module, or None.

    It is found without importing the packages around it: their code may fail.
    """
    path = getattr(sys.modules.get(name), "__file__", None)
    if path is None:
        top, *inner = _package_chain(name)
        spec = None
        with suppress(ImportError, ValueError):
            spec = find_spec(top)
        for module in inner:
            within = spec.submodule_search_locations if spec else None
            spec = PathFinder.find_spec(module, [*within]) if within is not None else None
        path = spec.origin if spec else None
    return Path(path) if path and Path(path).is_file() else None


def _imports(name: str, path: Path) -> Iterator[str]:
    """Yield the modules that a module may import, and their packages."""
    yield from _package_chain(name)
    if path.suffix != ".py":
        return
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            base = resolve_name(base, package) if package or not node.level else base
            imported = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for module in imported:
            yield from _package_chain(module)


def _package_chain(name: str) -> list[str]:
    """Return the names of the packages around a module, outermost first, and its own."""
    return [*accumulate(name.split("."), "{}.{}".format)]
