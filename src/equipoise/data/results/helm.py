"""Runs of HELM: `scenario_state.json`, or `display_predictions.json` with `instances.json`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from equipoise.core import Fields
from equipoise.data.json_tables import json_records
from equipoise.data.results import (
    ANSWERED,
    FAILED,
    REFUSED,
    Files,
    ResultFile,
    ResultsReader,
    Sample,
    is_right,
    json_of,
)

_STATE, _SHOWN = "scenario_state.json", "display_predictions.json"
_STATS, _INSTANCES, _SPEC = "per_instance_stats.json", "instances.json", "run_spec.json"
_METRICS = ("quasi_exact_match", "exact_match", "prefix_exact_match", "quasi_prefix_exact_match")
"""Metrics that say whether an answer is right, the first that a run has."""
_CORRECT = "correct"
_BLOCKED = re.compile(r"content (is |was )?blocked|content.?filter", re.IGNORECASE)
"""Reasons that are refusals."""
_Key: TypeAlias = tuple[str, str, int]
_Scores: TypeAlias = Mapping[_Key, Mapping[str, float]]


def read(files: Files) -> Iterator[Sample]:
    """Yield the samples of every run, a folder each."""
    folders: dict[Path, dict[str, ResultFile]] = {}
    for file in files:
        folders.setdefault(file.path.parent, {})[file.path.name] = file
    for folder in folders.values():
        yield from _of_state(folder) if _STATE in folder else _of_shown(folder)


def _of_state(folder: Mapping[str, ResultFile]) -> Iterator[Sample]:
    """Yield the samples of a whole run."""
    run = json_of(folder[_STATE], READER)
    scores = _scores(folder)
    for row in run["request_states"]:
        instance, result = row["instance"], row.get("result") or {}
        key = _key(instance["id"], instance.get("perturbation"), row["train_trial_index"])
        stats = scores.get(key, {})
        # Of a question that was asked option by option only the chosen option is an answer.
        option = row.get("reference_index")
        if option is not None and "predicted_index" not in stats:
            problem = f"{_STATS} in its folder doesn't say which option each answer is"
            raise READER.error(problem, folder[_STATE].path)
        if option is not None and stats["predicted_index"] != option:
            continue
        completions = result.get("completions") or [{}]
        text = completions[0].get("text") or ""
        failed = not result.get("success", False)
        stop = (completions[0].get("finish_reason") or {}).get("reason")
        reason = result.get("error") if failed else stop
        refused = bool(_BLOCKED.search(reason or ""))
        state = REFUSED if refused else FAILED if failed else ANSWERED
        yield _sample(
            instance, row, text, row.get("output_mapping"), stats,
            run["adapter_spec"].get("model"), state, None if state == ANSWERED else reason,
        )  # fmt: skip


def _of_shown(folder: Mapping[str, ResultFile]) -> Iterator[Sample]:
    """Yield the samples that a run displays, without its requests."""
    file = folder[_SHOWN]
    if _INSTANCES not in folder:
        raise READER.error(f"its folder lacks {_INSTANCES}", file.path)
    instances = {
        _key(row["id"], row.get("perturbation"), 0): row for row in _rows(folder[_INSTANCES])
    }
    spec = json_of(folder[_SPEC], READER) if _SPEC in folder else {}
    model = (spec.get("adapter_spec") or {}).get("model")
    for row in _rows(file):
        instance = instances[_key(row["instance_id"], row.get("perturbation"), 0)]
        text, chosen = row["predicted_text"], row.get("mapped_output")
        mapping = None if chosen is None else {text.strip(): chosen}
        stats = row.get("stats") or {}
        yield _sample(instance, row, text, mapping, stats, model, ANSWERED, None)


def _sample(
    instance: Fields, row: Fields, text: str, mapping: Mapping[str, str] | None,
    stats: Mapping[str, float], model: str | None, state: str, reason: str | None,
) -> Sample:  # fmt: skip
    references: Sequence[Fields] = instance.get("references") or ()
    texts = tuple(str(reference["output"]["text"]) for reference in references)
    right = (reference for reference in references if _CORRECT in reference.get("tags", ()))
    score = next((stats[name] for name in _METRICS if name in stats), None)
    perturbation = instance.get("perturbation") or {}
    extra: Fields = instance.get("extra_data") or {}
    splits: Fields = {name: instance[name] for name in ("split", "sub_split") if name in instance}
    option = row.get("reference_index")
    answer = text.strip() if mapping is None else mapping.get(text.strip(), text.strip())
    if option is not None:
        answer = references[option]["output"]["text"]
    return Sample(
        id=str(instance["id"]),
        answer=answer or None,
        output=text or None,
        target=next((reference["output"]["text"] for reference in right), None),
        correct=is_right(score),
        score=score,
        question=(instance.get("input") or {}).get("text"),
        options=texts if len(texts) > 1 else (),
        model=model,
        task=perturbation.get("name"),
        epoch=row["train_trial_index"] + 1,
        state=state,
        reason=reason,
        metadata={**splits, **({"perturbation": perturbation["name"]} if perturbation else {}),
                  **extra},
    )  # fmt: skip


def _scores(folder: Mapping[str, ResultFile]) -> _Scores:
    """Return the means of the metrics of each answer, by name."""
    if _STATS not in folder:
        return {}
    scores: dict[_Key, dict[str, float]] = {}
    for row in _rows(folder[_STATS]):
        key = _key(row["instance_id"], row.get("perturbation"), row["train_trial_index"])
        means = {
            stat["name"]["name"]: stat["mean"]
            for stat in row["stats"]
            if stat.get("mean") is not None and not stat["name"].get("perturbation")
        }
        scores.setdefault(key, {}).update(means)
    return scores


def _key(name: str, perturbation: Any, trial: int) -> _Key:
    return name, str(perturbation or ""), trial


def _rows(file: ResultFile) -> list[Fields]:
    return json_records(file.text, str(file))


READER = ResultsReader(
    "HELM",
    f"the folder of a run with {_STATE}, or with {_SHOWN} and {_INSTANCES}",
    r"scenario_state\.json|display_predictions\.json",
    read,
    companions=r"(per_instance_stats|instances|run_spec)\.json",
)
