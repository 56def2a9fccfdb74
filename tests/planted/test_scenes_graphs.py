"""The shipped graphs of the scenes load by name, with their labels, and run in an audit."""

import re
from pathlib import Path

from equipoise import audits
from equipoise.audits import load_config

PAGE = Path(__file__).resolve().parents[2] / "docs" / "planted-scenes.md"


def block(language, word):
    """The block of code of the page that has a word."""
    blocks = re.findall(
        rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    (code,) = [candidate for candidate in blocks if word in candidate]
    return code


def test_the_audit_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(block("python", "named"), {})
    audit = Path("named") / "audit.yaml"
    # Without replicates: what is asked here is whether the networks answer.
    audit.write_text(block("yaml", "onnx:") + "resampling: {method: none}\n", encoding="utf-8")
    result = audits.run(load_config(audit), base=audit.parent)
    right = {
        finding.model: finding.value
        for finding in result.findings
        if (finding.metric, finding.aggregate, finding.subject) == ("accuracy", "value", "")
    }
    assert {name: round(value, 3) for name, value in right.items()} == {
        "biased": 0.676,
        "null": 0.897,
    }
