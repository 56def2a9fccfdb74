"""The same answers in the layouts that evaluation tools write."""

import json

import numpy as np


def answers(n=200):
    """Return rows of answers, worse for one gender; a few are empty."""
    rng = np.random.default_rng(7)
    gender, target = rng.choice(["women", "men"], n), rng.choice(["nurse", "chef"], n)
    wrong = rng.random(n) < np.where(gender == "women", 0.4, 0.1)
    answer = np.where(wrong, np.where(target == "nurse", "chef", "nurse"), target)
    answer[::50] = ""
    columns = zip(gender.tolist(), target.tolist(), answer.tolist(), strict=True)
    return [
        {"id": str(row), "gender": g, "target": t, "answer": a, "score": float(t == a)}
        for row, (g, t, a) in enumerate(columns)
    ]


QUESTION, OPTIONS = "Which occupation is in the picture?", ["nurse", "chef"]


def _lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def every_eval_ever(folder, rows):
    samples = (
        {
            "schema_version": "0.3.0", "evaluation_id": "jobs/m/1", "model_id": "m",
            "evaluation_name": "jobs", "sample_id": row["id"], "sample_hash": "0" * 64,
            "interaction_type": "single_turn",
            "input": {"raw": QUESTION, "reference": [row["target"]], "choices": OPTIONS},
            "output": {"raw": [row["answer"]]},
            "answer_attribution": [{"turn_idx": 0, "source": "output.raw",
                                    "extracted_value": row["answer"],
                                    "extraction_method": "exact_match", "is_terminal": True}],
            "evaluation": {"score": row["score"], "is_correct": bool(row["score"])},
            "metadata": {"gender": row["gender"]},
        }
        for row in rows
    )  # fmt: skip
    return _lines(folder / "eee" / "jobs_samples.jsonl", samples)


def inspect_ai(folder, rows):
    samples = [
        {
            "id": row["id"], "epoch": 1, "input": QUESTION, "choices": OPTIONS,
            "target": row["target"], "metadata": {"gender": row["gender"]},
            "output": {"model": "m", "choices": [{
                "message": {"role": "assistant", "content": [
                    {"type": "text", "text": row["answer"]},
                ]},
                "stop_reason": "stop",
            }]},
            "scores": {"choice": {"value": "C" if row["score"] else "I",
                                  "answer": row["answer"] or None}},
        }
        for row in rows
    ]  # fmt: skip
    log = {"version": 2, "status": "success", "eval": {"task": "jobs", "model": "m"}}
    return _json(folder / "inspect" / "jobs.json", {**log, "samples": samples})


def lm_eval(folder, rows):
    samples = (
        {
            "doc_id": int(row["id"]), "doc": {"gender": row["gender"], "question": QUESTION,
                                              "choices": OPTIONS},
            "target": row["target"], "resps": [[row["answer"]]], "filtered_resps": [row["answer"]],
            "filter": "none", "metrics": ["exact_match"], "exact_match": row["score"],
        }
        for row in rows
    )  # fmt: skip
    name = "2026-01-01T00-00-00.000000"
    _json(folder / "lm_eval" / f"results_{name}.json", {"model_name": "m"})
    return _lines(folder / "lm_eval" / f"samples_jobs_{name}.jsonl", samples)


def vlmevalkit(folder, rows):
    columns = ("index", "question", "A", "B", "answer", "gender", "prediction", "hit")
    lines = ["\t".join(columns)]
    lines += [
        "\t".join([row["id"], QUESTION, *OPTIONS, row["target"], row["gender"], row["answer"],
                   str(int(row["score"]))])
        for row in rows
    ]  # fmt: skip
    path = folder / "vlmevalkit" / "m_jobs.tsv"
    path.parent.mkdir()
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def helm(folder, rows):
    states = [
        {
            "instance": {
                "id": row["id"], "input": {"text": QUESTION}, "split": "test",
                "references": [
                    {"output": {"text": name}, "tags": ["correct"] * (name == row["target"])}
                    for name in OPTIONS
                ],
                "extra_data": {"gender": row["gender"]},
            },
            "train_trial_index": 0, "output_mapping": {"A": OPTIONS[0], "B": OPTIONS[1]},
            "request": {"model": "m"},
            "result": {"success": True, "completions": [
                {"text": " AB"[(*OPTIONS, "").index(row["answer"]) + 1 if row["answer"] else 0]},
            ]},
        }
        for row in rows
    ]  # fmt: skip
    stats = [
        {"instance_id": row["id"], "train_trial_index": 0,
         "stats": [{"name": {"name": "exact_match", "split": "test"}, "mean": row["score"]}]}
        for row in rows
    ]  # fmt: skip
    run = folder / "helm" / "jobs:model=m"
    _json(run / "per_instance_stats.json", stats)
    _json(run / "scenario_state.json", {"adapter_spec": {"model": "m"}, "request_states": states})
    return run


def evalscope(folder, rows):
    samples = (
        {
            "index": int(row["id"]), "input": [{"role": "user", "content": QUESTION}],
            "target": row["target"],
            "sample_score": {
                "score": {"value": {"acc": row["score"]}, "main_score_name": "acc",
                          "extracted_prediction": row["answer"], "prediction": row["answer"]},
                "sample_id": int(row["id"]), "group_id": int(row["id"]),
                "sample_metadata": {"gender": row["gender"], "choices": OPTIONS},
            },
        }
        for row in rows
    )  # fmt: skip
    return _lines(folder / "reviews" / "m" / "jobs_default.jsonl", samples)


LAYOUTS = {
    writer.__name__: writer
    for writer in (every_eval_ever, inspect_ai, lm_eval, vlmevalkit, helm, evalscope)
}


def write_detections(folder):
    """Write annotated people of two groups, and what a detector finds of them."""
    boxes = [
        {"id": n, "image_id": n // 2, "category_id": 1, "bbox": [100 * (n % 2), 0, 10, 10],
         "iscrowd": 0, "gender": "women" if n % 3 else "men"}
        for n in range(120)
    ]  # fmt: skip
    crowd = {**boxes[0], "id": 999, "iscrowd": 1}
    # Each third person is missed: their detection is beside them.
    detections = [
        {**{key: box[key] for key in ("image_id", "category_id")}, "score": 0.5,
         "bbox": [box["bbox"][0] + (6 if box["id"] % 3 == 1 else 3), 0, 10, 10]}
        for box in boxes
    ]  # fmt: skip
    # A second detection of a person finds nobody else, nor does one of another category.
    detections += [
        {**detections[0], "score": 0.4},
        {**detections[1], "category_id": 2, "bbox": [100, 0, 10, 10]},
    ]
    truth = {"annotations": [*boxes, crowd], "images": [],
             "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "dog"}]}  # fmt: skip
    (folder / "annotations.json").write_text(json.dumps(truth))
    (folder / "ours.json").write_text(json.dumps(detections))
    return folder
