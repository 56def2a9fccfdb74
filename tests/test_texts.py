"""How the product's own text reads: pages, sentences, notes and messages."""

import ast
import re
from pathlib import Path

from jinja2 import Environment

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "equipoise"
# Words that hide the subject of a sentence. A text may have two in a thousand words.
IDIOMS = re.compile(
    r"\b(told|tells|whom|dear|asked for|said|those of|such(?! as)|lies|lie|held against|as it is|"
    r"let alone|taken as|stands? beside|beside (?:it|them|each|its)|"
    r"what (?:is|was|a|it|they|the|an|models?|people|repeats|names|each|leads|fits|else)|"
    r"where it|where they|of which|no (?:class|finding|share|metric) that|goes? on)\b",
    re.IGNORECASE,
)
MOST = 2 / 1000
_WORD = re.compile(r"[A-Za-z’']+")
_FEWEST_WORDS = 3
# The command's own text has its own tests; patterns of refusals are what models write.
_OUTSIDE = ("cli/", "data/refusals.py")


def _strings(tree):
    """Yield the strings of a module, "…" for values; documentation isn't among them."""
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(inner) for inner in ast.walk(node)}
            yield "".join(
                getattr(part, "value", "") if _plain(part) else "…" for part in node.values
            )
        elif _plain(node):
            yield node.value


def _plain(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _markup_text(source):
    """Return the text of a template, without its markup."""
    data = (text for _, kind, text in Environment(autoescape=True).lex(source) if kind == "data")
    return re.sub(r"<[^>]*>", " ", " ".join(data))


def texts():
    """Yield each file with a text that it shows."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(_OUTSIDE):
            for text in _strings(ast.parse(path.read_text(encoding="utf-8"))):
                if len(_WORD.findall(text)) >= _FEWEST_WORDS:
                    yield name, re.sub(r"`[^`\n]*`", " ", text)
    for path in sorted(PACKAGE.rglob("*.j2")):
        yield path.relative_to(PACKAGE).as_posix(), _markup_text(path.read_text(encoding="utf-8"))


def test_product_text_is_plain():
    shown = [*texts()]
    words = sum(len(_WORD.findall(text)) for _, text in shown)
    idioms = [(name, match[0], text) for name, text in shown for match in IDIOMS.finditer(text)]
    assert len(idioms) / words <= MOST, idioms


def test_each_kind_of_text_is_read():
    shown = [*texts()]
    for name, part in (
        ("report/assets/report.html.j2", "Can I trust this?"),
        ("report/text.py", "Not enough data"),
        ("metrics/labels/confusion_rates.py", "{model} misses {subject} for {groups}"),
        ("core/errors.py", "is not installed. To do: run pip install"),
        ("data/predictions.py", "labels that aren't classes of …"),
    ):
        assert any(name == file and part in text for file, text in shown), name


def test_idioms_are_seen():
    assert IDIOMS.search("what is shown")
    assert IDIOMS.search("such labels")
    assert not IDIOMS.search("a label such as “cook”")
