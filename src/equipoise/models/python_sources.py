"""Source files of a model that the user's own code makes: its modules, and what they import."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path

from equipoise.models.info import sha256_of

_INSTALLED = frozenset({"site-packages", "dist-packages"})


def source_digests(modules: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of the files of modules, and of the local modules that they import.

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
    roots = {*modules}
    tops = {_top(name) for name in roots} - {"equipoise"}
    waiting, seen, found = [*roots], set[str](), dict[str, str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        path = _file(name)
        if path is None or not (name in roots or _top(name) in tops or _is_local(name, path)):
            continue
        found[name] = sha256_of(path)
        waiting += _imports(name, path)
    return dict(sorted(found.items()))


def _top(name: str) -> str:
    return name.partition(".")[0]


def _is_local(name: str, path: Path) -> bool:
    known = _top(name) in sys.stdlib_module_names or _top(name) == "equipoise"
    return not known and _INSTALLED.isdisjoint(path.parts)


def _file(name: str) -> Path | None:
    """Return the file of a module, None where it has none."""
    loaded = getattr(sys.modules.get(name), "__file__", None)
    spec = None if loaded else _spec(name)
    path = loaded or (spec.origin if spec is not None and spec.has_location else None)
    return Path(path) if path and Path(path).is_file() else None


def _spec(name: str) -> ModuleSpec | None:
    """Find a module without importing the packages around it."""
    top, *inner = name.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    for end in range(len(inner)):
        if spec is None or spec.submodule_search_locations is None:
            return None
        within = [*spec.submodule_search_locations]
        spec = PathFinder.find_spec(".".join([top, *inner[: end + 1]]), within)
    return spec


def _imports(name: str, path: Path) -> Iterator[str]:
    """Yield the names of modules that a module may import, and of the packages around it."""
    yield from _around(name)
    if path.suffix != ".py":
        return
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            wanted = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            wanted = _from(node, package)
        else:
            continue
        for one in wanted:
            yield from (one, *_around(one))


def _from(node: ast.ImportFrom, package: str) -> list[str]:
    base = node.module or ""
    if node.level:
        parts = package.split(".")
        base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [base])])
    return [base, *(f"{base}.{one.name}" for one in node.names)] if base else []


def _around(name: str) -> Iterator[str]:
    parts = name.split(".")
    yield from (".".join(parts[:end]) for end in range(1, len(parts)))
