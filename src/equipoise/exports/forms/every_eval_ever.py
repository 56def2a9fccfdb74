"""Every Eval Ever 0.3.0: results of a model, and its rows, for a shared database.

The schemas are those of the package every-eval-ever. What they have no field for, such as groups
and verdicts, travels as text in `score_details.details`.
"""

import json
import math
from collections.abc import Iterator, Mapping
from hashlib import sha256

from equipoise.core import Fields, Finding, RunError
from equipoise.core.files import decode_json
from equipoise.core.finding import Aggregate
from equipoise.data import PredictionData
from equipoise.evidence import read_predictions
from equipoise.exports import Files, Form, Run
from equipoise.exports.contents import (
    about,
    as_json,
    as_texts,
    data_sets,
    finding_of_texts,
    findings_of,
    identifier,
    known,
    metric_title,
    models,
    path_segment,
    sentences,
    started,
    version,
)
from equipoise.metrics.spec import spec_of_finding

SCHEMA_VERSION = "0.3.0"
_NOT_ESTIMABLE = "findings_without_a_number"
_UNITS = {"share": "proportion", "points": "proportion", "degrees": "radians"}


def write(run: Run) -> Files:
    """Return a file of results for each model, and one of rows where there are true labels."""
    rows = _rows_of(run)
    files: dict[str, str] = {}
    for model in models(run):
        path = f"data/equipoise/{_folder(model)}/{identifier(run, model)}"
        document = _document(run, model)
        if rows is not None and model in rows.models:
            text = "".join(_samples(model, rows, str(document["evaluation_id"])))
            files[f"{path}_samples.jsonl"] = text
            document["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": f"{path}_samples.jsonl",
                "hash_algorithm": "sha256",
                "checksum": sha256(text.encode()).hexdigest(),
                "total_rows": text.count("\n"),
            }
        files[f"{path}.json"] = as_json(document)
    if not files:
        raise RunError(
            f"{run.folder}: it measured no model, and this form holds results of models. "
            "To do: choose another form, such as croissant for a data set"
        )
    return files


def findings_in(text: str) -> tuple[Finding, ...]:
    """Return the findings of a file of results that `write` made, with every number."""
    document = decode_json(text)
    details = [item["score_details"]["details"] for item in document["evaluation_results"]]
    texts = document["source_metadata"].get("additional_details", {}).get(_NOT_ESTIMABLE, "[]")
    places = [(int(fields["place"]), fields) for fields in [*details, *decode_json(texts)]]
    return tuple(finding_of_texts(fields) for _, fields in sorted(places, key=lambda item: item[0]))


def _document(run: Run, model: str) -> Fields:
    scores, without_number = [], []
    for place, finding in findings_of(run, model):
        if math.isfinite(finding.value):
            scores.append(_score(run, place, finding))
        else:
            without_number.append({"place": str(place), **as_texts(finding)})
    details = {"summary": "\n".join(sentences(run))}
    if without_number:
        details[_NOT_ESTIMABLE] = json.dumps(without_number, ensure_ascii=False)
    epoch = str(int(started(run).timestamp()))
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"equipoise/{model}/{epoch}",
        "evaluation_timestamp": epoch,
        "retrieved_timestamp": epoch,
        "source_metadata": {
            "source_name": "equipoise",
            "source_type": "evaluation_run",
            "source_organization_name": "not stated",
            "evaluator_relationship": "other",
            "additional_details": details,
        },
        "eval_library": {"name": "equipoise", "version": version(run)},
        "model_info": _model_info(run, model),
        "evaluation_results": scores,
    }


def _model_info(run: Run, model: str) -> Fields:
    facts = run.result.manifest.models.get(model, {})
    details = {"deployment_type": "unknown", "model_availability": "unknown"}
    if facts:
        details["model"] = as_json(facts).strip()
    return {"name": model, "id": model, "additional_details": details}


def _score(run: Run, place: int, finding: Finding) -> Fields:
    spec = spec_of_finding(finding)
    low, high = spec.range
    ends = known({"lower": finding.ci_low, "upper": finding.ci_high})
    uncertainty: Fields = {"num_samples": finding.n}
    if len(ends) == 2:
        uncertainty["confidence_interval"] = {
            **ends, "confidence_level": finding.level, "method": finding.method,
        }  # fmt: skip
    level = finding.aggregate is Aggregate.VALUE
    return {
        "evaluation_result_id": f"finding-{place}",
        "evaluation_name": "; ".join(filter(None, (metric_title(finding), about(finding)))),
        "source_data": _source(run),
        "metric_config": {
            "metric_id": finding.metric if level else f"{finding.metric}.{finding.aggregate}",
            "metric_name": metric_title(finding),
            "metric_kind": finding.metric,
            "metric_unit": _UNITS.get(spec.unit, spec.unit),
            "metric_parameters": {
                name: value
                for name, value in finding.parameters.items()
                if isinstance(value, str | int | float | bool | None)
            },
            "lower_is_better": spec.harm != "lower",
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
        },
        "score_details": {
            "score": finding.value,
            "details": {"place": str(place), **as_texts(finding)},
            "uncertainty": uncertainty,
        },
    }


def _source(run: Run) -> Fields:
    name = ", ".join(data_sets(run)) or "data in memory"
    if run.dataset:
        return {"dataset_name": name, "source_type": "hf_dataset", "hf_repo": run.dataset}
    return {"dataset_name": name, "source_type": "other"}


def _folder(model: str) -> str:
    """Return the developer and the model as two folders."""
    developer, _, name = model.rpartition("/")
    return f"{path_segment(developer)}/{path_segment(name)}"


def _rows_of(run: Run) -> PredictionData | None:
    """Return the rows behind the findings; None without true labels of the rows."""
    if not (run.folder / "predictions").is_dir():
        return None
    data = read_predictions(run.folder)
    return data if (data.coded_target.codes >= 0).any() else None


def _samples(model: str, data: PredictionData, evaluation: str) -> Iterator[str]:
    """Yield the rows of a model, one a line; rows without a true label are left out."""
    predictions = data.models[model]
    labels = next(iter(predictions.versions_with_verdicts.values())).label
    columns = dict(data.attributes) | ({} if data.unit is None else {"unit": data.unit})
    rows = zip(data.ids.tolist(), data.target, labels, predictions.state, strict=True)
    for row, (image, right, label, state) in enumerate(rows):
        if right is not None:
            texts = {name: values[row] for name, values in columns.items()}
            metadata = {name: text for name, text in texts.items() if text is not None}
            yield _sample(evaluation, model, image, right, label, state, metadata)


def _sample(
    evaluation: str, model: str, image: str, right: str, label: str | None, state: str,
    metadata: Mapping[str, str],
) -> str:  # fmt: skip
    correct = label == right
    sample = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation,
        "model_id": model,
        "evaluation_name": "equipoise",
        "sample_id": image,
        "sample_hash": sha256(f"{image}{right}".encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": image, "reference": [right]},
        "output": {"raw": [] if label is None else [label]},
        "answer_attribution": [{
            "turn_idx": 0, "source": "output.raw", "extracted_value": label or "",
            "extraction_method": "exact_match", "is_terminal": True,
        }],
        "evaluation": {"score": float(correct), "is_correct": correct},
        "error": None if state == "answered" else state,
        "metadata": dict(metadata),
    }  # fmt: skip
    return json.dumps(sample, ensure_ascii=False) + "\n"


FORM = Form("results and rows of each model in the form of Every Eval Ever 0.3.0", write)
