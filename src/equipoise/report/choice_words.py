"""What other choices of measurement do to conclusions, in words."""

from equipoise.core.conclusion import Conclusion, Step
from equipoise.metrics.spec import spec_of
from equipoise.report.text import count, enclose, listed, plural


def choices_sentence(conclusion: Conclusion) -> str:
    """Say how many conclusions on a metric change, and with which choice."""
    step, metric = conclusion.leading_step, _metric(conclusion)
    if step is None or not step.found:
        return f"No difference in {metric} was found with any choice."
    conclusions = plural(step.found, "conclusion")
    if not any(other.changed for other in conclusion.steps):
        return f"None of {conclusions} on {metric} changes with any choice."
    verb = "changes" if step.changed == 1 else "change"
    return f"{count(step.changed)} of {conclusions} on {metric} {verb} {_when(step)}."


def choices_certainty(conclusion: Conclusion) -> str:
    """Say what becomes of the conclusions, and what all choices of the last version do."""
    step = conclusion.leading_step
    if step is None or not step.found:
        return ""
    text = f"{name_of_step(step)}: {effects_text(step)}."
    first, last = conclusion.steps[0].baseline, conclusion.steps[-1].version
    for other in conclusion.steps:
        # A version of one choice is an alternative; one of several builds on others.
        whole = (other.baseline, other.version) == (first, last) and len(other.choices) > 1
        if whole and other != step:
            counts = f"{count(other.changed)} of {count(other.found)} change"
            text += f" {name_of_step(other)}: {counts}."
    return text


def effects_text(step: Step) -> str:
    """Return the counts of a step: "2 surface, 1 is explained, 3 switch"."""
    counts = (
        (step.surfaces, "surfaces", "surface"),
        (step.explains, "is explained", "are explained"),
        (step.switches, "switches groups", "switch groups"),
        (step.magnifies, "grows", "grow"),
        (step.shrinks, "shrinks", "shrink"),
        (step.found - step.changed - step.magnifies - step.shrinks - step.unclear, "stays", "stay"),
        (step.unclear, "may be chance", "may be chance"),
    )
    return listed([f"{count(n)} {one if n == 1 else more}" for n, one, more in counts if n], 9)


_BECOMES = {
    "explains": "explained", "switches": "the other way", "magnifies": "larger",
    "shrinks": "smaller", "lost power": "no longer certain",
}  # fmt: skip


def effect_clause(conclusion: Conclusion) -> str:
    """Say what becomes of a difference under other choices; "" where nothing does."""
    word = _BECOMES.get(conclusion.effect, "")
    return enclose("; ", word, enclose(" when ", conclusion.change))


def name_of_step(step: Step) -> str:
    """Return the versions of a step, from the first to the other."""
    return f"{step.baseline} → {step.version}"


def scope_of_choices(conclusion: Conclusion, *, models: int, groups: int) -> str:
    """Name a conclusion's model and groups where a run has several."""
    names = [conclusion.model] if models > 1 else []
    names += [conclusion.groups] if groups > 1 else []
    return ", ".join(filter(None, names))


def short_choices_line(conclusion: Conclusion) -> str:
    """Return a conclusion on choices in a line."""
    step = conclusion.leading_step
    if step is None or not step.changed:
        return choices_sentence(conclusion)
    return (
        f"{_metric(conclusion)[:1].upper()}{_metric(conclusion)[1:]}: "
        f"{count(step.changed)} of {plural(step.found, 'conclusion')} change {_when(step)}"
    )


def _when(step: Step) -> str:
    return enclose("when ", step.change) or f"with “{step.version}”"


def _metric(conclusion: Conclusion) -> str:
    return spec_of(conclusion.metric).label
