"""Small tables of images and answers whose numbers are known beforehand."""

import polars as pl

from equipoise import audits

N = 100


def images(n=N, **columns):
    """Half of the images are of group a, half of group b."""
    ids = [f"i{index:04d}" for index in range(2 * n)]
    return pl.DataFrame({"id": ids, "group": ["a"] * n + ["b"] * n, **columns})


def answers(a, b):
    """Return answers by group, as often as the numbers say."""
    texts = [text for counts in (a, b) for text, count in counts.items() for _ in range(count)]
    return pl.DataFrame({"id": [f"i{index:04d}" for index in range(len(texts))], "said": texts})


def config(table, *, frame=None, **changes):
    values = {
        "audit": "answers",
        "data": {"table": images() if frame is None else frame, "id": "id", "groups": ["group"]},
        "models": {"m": {"table": table, "answer": "said", **changes.pop("model", {})}},
        "resampling": {"replicates": 100, "seed": 1},
    }
    for key, value in changes.items():
        values[key] = values.get(key, {}) | value if isinstance(value, dict) else value
    return audits.parse_config(values)


def run(table, **changes):
    return audits.run(config(table, **changes))


def pick(result, metric, subject="", version=None, compared_to=""):
    """Return the only finding of a metric, by default of normalised answers and of groups."""
    findings = [
        finding
        for finding in result.findings
        if (finding.metric, finding.subject, finding.compared_to) == (metric, subject, compared_to)
        and (finding.version == version if version else not finding.version.endswith("raw"))
    ]
    findings = [finding for finding in findings if finding.groups] or findings
    assert len(findings) == 1, [
        (finding.metric, finding.subject, finding.version) for finding in result.findings
    ]
    return findings[0]
