from equipoise.exports import Form


def write(run):
    """Return the verdicts of a run, one a line."""
    lines = [f"{finding.metric}: {finding.verdict}" for finding in run.result.findings]
    return {"verdicts.txt": "\n".join(lines) + "\n"}


FORM = Form("the verdicts", write)
