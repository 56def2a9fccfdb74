"""OSCAL assessment results: each conclusion is an observation, and none judges a control."""

from equipoise.core import Fields
from equipoise.core.conclusion import Conclusion
from equipoise.exports import Files, Form, Run
from equipoise.exports.contents import (
    NO_COMPLIANCE,
    about,
    as_json,
    as_texts,
    data_sets,
    identifier,
    limitations,
    sentences,
    stated,
    timestamp,
    title_of,
    version,
)
from equipoise.report.words import conclusion_sentence

OSCAL_VERSION = "1.1.3"
NAMESPACE = "https://equipoise.invalid/oscal"
"""Of the properties: a name that resolves nowhere."""
_NUMBERS = (
    "value", "ci_low", "ci_high", "level", "chance", "p_value", "q_value", "n", "verdict",
    "groups", "group", "subject", "unit",
)  # fmt: skip


def write(run: Run) -> Files:
    """Return one document with the observations of the run."""
    texts = sentences(run)
    document = {
        "uuid": identifier(run),
        "metadata": {
            "title": "Measurements of differences between groups",
            "last-modified": timestamp(run),
            "version": version(run),
            "oscal-version": OSCAL_VERSION,
            "remarks": NO_COMPLIANCE,
        },
        "import-ap": {
            "href": "config.yaml",
            "remarks": "The configuration of the audit stands in place of an assessment plan.",
        },
        "results": [{
            "uuid": identifier(run, "result"),
            "title": f"Audit of {', '.join(data_sets(run)) or 'data in memory'}",
            "description": "\n".join(texts) or "The run has no conclusions.",
            "start": timestamp(run),
            "reviewed-controls": {
                "description": "No control of a catalogue was judged.",
                # The form wants an identifier: this one is of no control.
                "control-selections": [{"include-controls": [{"control-id": "none"}]}],
            },
            **_observations(run),
            "remarks": "\n".join(limitations(run)) or "No warnings or notes.",
        }],
    }  # fmt: skip
    return {"assessment-results.json": as_json({"assessment-results": document})}


def _observations(run: Run) -> Fields:
    """Return the field of observations; no field without a conclusion."""
    observations = [
        _observation(run, place, conclusion)
        for place, conclusion in enumerate(run.result.conclusions)
    ]
    return {"observations": observations} if observations else {}


def _observation(run: Run, place: int, conclusion: Conclusion) -> Fields:
    finding = stated(run, conclusion)
    fields = as_texts(finding)
    of_model = f"{conclusion.model}: " if conclusion.model else ""
    sentence = conclusion_sentence(run.result.findings[conclusion.finding], conclusion)
    return {
        "uuid": identifier(run, "observation", str(place)),
        "title": f"{of_model}{title_of(conclusion, finding)}",
        "description": f"{'; '.join(filter(None, (finding.verdict, about(finding))))}. {sentence}",
        "methods": ["TEST"],
        "props": [
            {"name": name, "ns": NAMESPACE, "value": fields[name]}
            for name in _NUMBERS
            if fields.get(name, "").strip()
        ],
        "collected": timestamp(run),
    }


FORM = Form("observations in OSCAL assessment results", write)
