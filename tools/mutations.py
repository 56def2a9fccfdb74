"""Candidate mutations of Python source: each changes one expression of one file."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Changes of error messages, imports, texts and annotations change no number.
SKIPPED = (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr)
SKIPPED_FIELDS = frozenset({"annotation", "returns", "decorator_list", "bases"})
OPERATORS = {
    "Add": ("Sub",),
    "Sub": ("Add",),
    "Mult": ("Div",),
    "Div": ("Mult",),
    "FloorDiv": ("Mult",),
    "Mod": ("Mult",),
    "Pow": ("Mult",),
    "BitAnd": ("BitOr",),
    "BitOr": ("BitAnd",),
    "BitXor": ("BitAnd",),
    "LShift": ("RShift",),
    "RShift": ("LShift",),
    "Lt": ("LtE", "Gt"),
    "LtE": ("Lt", "GtE"),
    "Gt": ("GtE", "Lt"),
    "GtE": ("Gt", "LtE"),
    "Eq": ("NotEq",),
    "NotEq": ("Eq",),
    "Is": ("IsNot",),
    "IsNot": ("Is",),
    "In": ("NotIn",),
    "NotIn": ("In",),
    "And": ("Or",),
    "Or": ("And",),
}
OPPOSITES = (
    ("min", "max"),
    ("minimum", "maximum"),
    ("fmin", "fmax"),
    ("nanmin", "nanmax"),
    ("argmin", "argmax"),
    ("any", "all"),
    ("floor", "ceil"),
)
FUNCTIONS = {one: other for pair in OPPOSITES for one, other in (pair, pair[::-1])}
SIDES = {"left": "right", "right": "left"}


@dataclass(frozen=True)
class Mutation:
    """Replace the bytes from `start` to `stop` of a file."""

    file: str
    line: int
    name: str  # the function, class or constant of the module that contains the change
    kind: str
    start: int
    stop: int
    before: str
    after: str

    def apply(self, source: bytes) -> bytes:
        """Return the source with the change."""
        return source[: self.start] + self.after.encode() + source[self.stop :]


def draw(sites: Sequence[Sequence[Mutation]], seed: int, count: int) -> list[Mutation]:
    """Draw sites without replacement, all equally likely, and one mutation of each."""
    if count > len(sites):
        raise ValueError(f"{count} mutations are more than the {len(sites)} sites")
    rng = np.random.default_rng(seed)
    chosen = [sites[int(index)] for index in rng.choice(len(sites), count, replace=False)]
    return [site[int(rng.integers(len(site)))] for site in chosen]


def find_sites(root: Path, folders: Sequence[str]) -> list[list[Mutation]]:
    """Return the mutations of each site in the Python files below `folders`, in order."""
    files = sorted(path for folder in folders for path in (root / folder).rglob("*.py"))
    return [site for path in files for site in file_sites(root, path)]


def file_sites(root: Path, path: Path) -> Iterator[list[Mutation]]:
    """Yield the mutations of each site of one file, in order of position."""
    source = path.read_bytes()
    offsets = [0]
    for line in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    file = path.relative_to(root).as_posix()
    sites = []
    for name, inside, node in named_nodes(ast.parse(source)):
        for kind, target, texts in changes(node, inside):
            stop = offsets[(target.end_lineno or 1) - 1] + (target.end_col_offset or 0)
            start = offsets[target.lineno - 1] + target.col_offset
            if isinstance(target, ast.Attribute):  # Of `array.min` only the attribute is replaced.
                start = stop - len(target.attr)
            before = source[start:stop].decode()
            sites.append([
                Mutation(file, target.lineno, name, kind, start, stop, before, text)
                for text in texts
            ])  # fmt: skip
    yield from sorted(filter(None, sites), key=lambda one: (one[0].start, one[0].stop, one[0].kind))


def named_nodes(tree: ast.Module) -> Iterator[tuple[str, bool, ast.AST]]:
    """Yield each node with the top-level name it belongs to and whether a function has it."""
    for statement in tree.body:
        name = top_level_name(statement)
        stack: list[tuple[bool, ast.AST]] = [(False, statement)]
        while stack and name != "__all__":
            inside, node = stack.pop()
            yield name, inside, node
            deeper = inside or isinstance(node, ast.FunctionDef)
            stack.extend((deeper, child) for child in children(node))


def top_level_name(statement: ast.stmt) -> str:
    """Return the name that a statement of a module defines, or nothing."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return statement.name
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    return targets[0].id if isinstance(targets[0], ast.Name) else ""


def children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the child nodes in which a mutation can change a number."""
    if isinstance(node, ast.keyword) and keyword_texts(node):
        return
    skipped = 0
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        skipped = {"isinstance": -1, "cast": 1}.get(node.func.id, 0)
    for field, value in ast.iter_fields(node):
        if field in SKIPPED_FIELDS:
            continue
        listed = value if isinstance(value, list) else [value]
        if field == "args" and skipped:
            listed = listed[1:] if skipped > 0 else listed[:1]
        yield from (
            child
            for child in listed
            if isinstance(child, ast.AST) and not isinstance(child, SKIPPED)
        )


Change = tuple[str, ast.expr | ast.stmt, list[str]]


def changes(node: ast.AST, inside: bool) -> Iterator[Change]:
    """Yield the kind, the node to replace and the replacements of each site in a node."""
    match node:
        case ast.Constant():
            yield "constant", node, constants(node.value)
        case ast.keyword():
            yield f"keyword {node.arg}", node.value, keyword_texts(node)
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            yield "function", node.func, [FUNCTIONS[name]] if name in FUNCTIONS else []
        case _:
            yield from operator_changes(node, inside)


def operator_changes(node: ast.AST, inside: bool) -> Iterator[Change]:
    """Yield the sites of operators; outside functions `|` joins types."""
    match node:
        case ast.BinOp() if not (is_text(node.left) or is_text(node.right)):
            if inside or not isinstance(node.op, ast.BitOr):
                yield "arithmetic", node, [f"({text})" for text in replaced(node)]
        case ast.AugAssign():
            yield "arithmetic", node, replaced(node)
        case ast.Compare():
            for index in range(len(node.ops)):
                yield "comparison", node, [f"({text})" for text in replaced(node, index)]
        case ast.BoolOp():
            yield "boolean", node, [f"({text})" for text in replaced(node)]
        case ast.UnaryOp() if not isinstance(node.operand, ast.Constant):
            yield "dropped operator", node, [f"({ast.unparse(node.operand)})"]


def is_text(node: ast.expr) -> bool:
    """Return whether an operand is a string literal."""
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def replaced(
    node: ast.BinOp | ast.AugAssign | ast.BoolOp | ast.Compare, index: int = 0
) -> list[str]:
    """Return the text of a node with each of the other operators at one place."""
    texts = []
    ops = node.ops if isinstance(node, ast.Compare) else [node.op]
    for name in OPERATORS.get(type(ops[index]).__name__, ()):
        other, changed = getattr(ast, name)(), copy.copy(node)
        if isinstance(changed, ast.Compare):
            changed.ops = [*ops[:index], other, *ops[index + 1 :]]
        else:
            changed.op = other
        texts.append(ast.unparse(changed))
    return texts


def constants(value: object) -> list[str]:
    """Return the numbers beside a number, or the other truth value."""
    if isinstance(value, bool):
        return [str(not value)]
    if isinstance(value, int | float):
        return [repr(value + 1), f"({value - 1!r})"]
    return []


def keyword_texts(node: ast.keyword) -> list[str]:
    """Return the other axes, or the other side, where a keyword names one."""
    text = ast.unparse(node.value)
    if node.arg == "axis":
        return {"0": ["1"], "1": ["0"], "-1": ["0"], "2": ["1"]}.get(text, [])
    if node.arg == "side":
        return [repr(SIDES[text.strip("'")])] if text.strip("'") in SIDES else []
    return []
