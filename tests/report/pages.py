"""A page of every kind: examples of audits with few resamples, and results that are made up."""

from functools import cache
from pathlib import Path

from equipoise import audits
from equipoise.audits.labels.predictions.page import PAGE as PREDICTIONS
from equipoise.cli.runs import page_of
from equipoise.mitigate.page import AUGMENTATION
from equipoise.mitigate.page import PAGE as MITIGATION
from report import synthetic

EXAMPLES = Path(__file__).parents[2] / "examples"
KINDS = ("activations", "answers", "associations", "concepts", "counterfactuals", "dataset",
         "diversity", "generation", "questions", "regression", "retrieval", "similarity",
         "text_to_image")  # fmt: skip
MADE = {
    "predictions": (synthetic.faces, PREDICTIONS),
    "six models": (synthetic.six_models, PREDICTIONS),
    "many classes": (lambda: synthetic.many_classes(20), PREDICTIONS),
    "labels that attack": (synthetic.hostile, PREDICTIONS),
    "comparison": (synthetic.comparison, None),
    "mitigation": (synthetic.mitigation, MITIGATION),
    "augmentation": (synthetic.augmentation, AUGMENTATION),
}
PAGES = (*KINDS, *MADE)


@cache
def result_and_page(name):
    """Return a result and the page of its kind."""
    if name in MADE:
        make, page = MADE[name]
        return make(), page
    config = audits.load_config(EXAMPLES / name / "audit.yaml")
    few = config.resampling.model_copy(update={"replicates": 20, "permutations": 99})
    result = audits.run(config.model_copy(update={"resampling": few}), base=EXAMPLES / name)
    return result, page_of(result)
