"""Units of an image encoder that respond to a group: recorded, tested, chosen and changed."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import special, stats

from equipoise.core import (
    Booleans,
    Floats,
    Floats32,
    GroupLabels,
    Groups,
    InputError,
    Integers,
    Integers32,
    Labels,
    ModelError,
    encode,
    record,
    unwarned,
)
from equipoise.mitigate.trials import Trial, change_rows
from equipoise.models.edits import (
    MODES,
    LayerEdit,
    Mode,
    UnitEdit,
    edited,
    insides,
    runs_images,
)
from equipoise.models.images import Images
from equipoise.models.protocols import DualEncoder, Model
from equipoise.stats.chance import benjamini_hochberg
from equipoise.stats.streams import stream

# Class names of activation functions contain one of these.
_ACTIVATIONS = ("relu", "gelu", "silu", "swish", "elu", "mish")
_IMAGES_AT_ONCE, _UNITS_AT_ONCE = 64, 1024
# Members of the smaller side up to which p is exact, where no activations are equal.
_EXACT = 8
_LEAST_SPREAD = 1e-6


@record
class Recording:
    """Activations of n images.

    Attributes
    ----------
    values : ndarray of float32, shape (n, units)
        Means over the places of an image.
    layers : tuple of str
        Names of the layers, in the order in which they ran.
    layer, unit : ndarray of int64, shape (units,)
        Layer of each column, and its unit there.
    axes : mapping of str to int
        Axis of the units in the output of a layer: 1 (channels first) or -1.
    """

    values: Floats32
    layers: tuple[str, ...]
    layer: Integers
    unit: Integers
    axes: Mapping[str, int]


def record_units(model: Model, images: Images, *, layers: Sequence[str] | None = None) -> Recording:
    """Run a model over images and record the activations of its units.

    Parameters
    ----------
    model : DualEncoder or Classifier
        That runs on torch.
    images : sequence of n images
    layers : sequence of str, optional
        Names in the module. Default: every activation function that runs once for an image.

    Raises
    ------
    ModelError
        When the model cannot be hooked, has no such layer, or runs it several times for an image.
    InputError
        When there are no images.
    """
    if not len(images):
        raise InputError("images: none; expected at least one")
    inside = insides(model)
    run = runs_images(model)
    inside.need_torch("looking at units while it runs")
    taken: dict[str, list[Any]] = {}
    axes: dict[str, int] = {}

    def record(name: str, _module: Any, _inputs: Any, output: Any) -> None:
        shape = tuple(getattr(output, "shape", ()))
        if not 2 <= len(shape) <= 4:
            raise ModelError(
                f"the layer {name!r} gives no tensor of units. To do: name another layer"
            )
        last = len(shape) < 4 or (shape[1] == shape[2] != shape[3])
        axes[name] = -1 if last else 1
        places = output.movedim(axes[name], -1)
        places = places.reshape(shape[0], -1, places.shape[-1])
        taken.setdefault(name, []).append(places.float().mean(dim=1).detach().cpu().numpy())

    with ExitStack() as stack:
        every = (
            name
            for name, layer in inside.module.named_modules()
            if name
            and not any(layer.children())
            and any(word in type(layer).__name__.lower() for word in _ACTIVATIONS)
        )
        for name in dict.fromkeys(every if layers is None else layers):
            hook = partial(record, name)
            stack.callback(inside.layer(name).register_forward_hook(hook).remove)
        for start in range(0, len(images), _IMAGES_AT_ONCE):
            run(images[start : start + _IMAGES_AT_ONCE])
    joined = {name: np.concatenate(parts) for name, parts in taken.items()}
    kept = {name: values for name, values in joined.items() if len(values) == len(images)}
    if not kept or not {*(layers or ())} <= {*kept}:
        raise ModelError(
            f"{inside.name} runs only {[*kept]} once for an image. To do: name other layers"
        )
    widths = [part.shape[1] for part in kept.values()]
    return Recording(
        np.concatenate([*kept.values()], axis=1),
        tuple(kept),
        np.repeat(np.arange(len(kept)), widths),
        np.concatenate([np.arange(width) for width in widths]),
        {name: axes[name] for name in kept},
    )


@record
class Selectivity:
    """Responses of units to groups.

    Attributes
    ----------
    groups : tuple of str
        Groups with images, each against all others.
    auroc : ndarray of float64, shape (groups, units)
        Probability that a unit is more active on an image of the group than on one of the others,
        ties counted half: 0.5 says nothing, above 0.5 it responds to the group, below to the
        others. NaN where images cannot be compared.
    p_value, q_value : ndarray of float64, shape (groups, units)
        Two-sided; corrected over all units and groups together.
    """

    groups: tuple[str, ...]
    auroc: Floats
    p_value: Floats
    q_value: Floats

    def strongest(self) -> list[tuple[int, int]]:
        """Return units with the group they respond to (place in `groups`), the strongest first.

        Of units that are equally selective, the first comes first.
        """
        lean = np.nan_to_num(self.auroc - 0.5)
        strength = np.where(np.isnan(self.auroc), -1.0, np.abs(lean)).max(axis=0)
        order = np.argsort(-strength, kind="stable")
        return [*zip(order.tolist(), lean.argmax(axis=0)[order].tolist(), strict=True)]


def selectivity(
    activations: npt.ArrayLike, groups: GroupLabels, *, within: Labels | None = None
) -> Selectivity:
    """Measure how well each unit tells groups apart.

    Parameters
    ----------
    activations : array-like, shape (n, units)
        Of each unit on each image.
    groups : array-like (n,), mapping of attribute to labels, or Groups
        Images without a group take no part.
    within : array-like (n,), optional
        Strata within which alone images are compared, such as their subject or their
        counterfactual set, so that a unit that responds to that is not taken for one that responds
        to the group.

    Returns
    -------
    Selectivity
        P-values by Mann and Whitney's test: normal, with the variance that equal activations leave
        and a correction for continuity; exact where a side has at most 8 images, no activations
        are equal and nothing is held fixed. With `within`, statistics and variances are summed over
        strata (van Elteren's test with equal weights).

    Raises
    ------
    InputError
        When shapes do not fit, an activation is not finite, or fewer than two groups have images.

    References
    ----------
    Mann & Whitney 1947; van Elteren 1960; Benjamini & Hochberg 1995.
    """
    values, grouped = np.asarray(activations, dtype=np.float64), Groups.of(groups)
    codes = grouped.codes
    if values.ndim != 2 or len(values) != len(codes):
        raise InputError(
            f"activations: shape {values.shape} for {len(codes)} labels; expected (n, units)"
        )
    if not np.isfinite(values).all():
        raise InputError("activations: a number is not finite; leave out its image")
    present = np.flatnonzero(grouped.counts > 0).tolist()
    if len(present) < 2:
        raise InputError("groups: fewer than two have images; expected two or more to tell apart")
    strata = [np.flatnonzero(codes >= 0)]
    if within is not None:
        labels, names = encode(within, what="within")
        if len(labels) != len(codes):
            raise InputError(f"within: {len(labels)} labels for {len(codes)} images")
        strata = [np.flatnonzero((codes >= 0) & (labels == code)) for code in range(len(names))]
    # Of two groups, the first against the second says the same of both.
    tested = present[:1] if len(present) == 2 else present
    auroc, p = np.empty((2, len(tested), values.shape[1]))
    for row, code in enumerate(tested):
        for start in range(0, values.shape[1], _UNITS_AT_ONCE):
            part = slice(start, start + _UNITS_AT_ONCE)
            auroc[row, part], p[row, part] = _tested(values[:, part], codes == code, strata)
    if len(present) == 2:
        auroc, p = np.concatenate([auroc, 1.0 - auroc]), np.concatenate([p, p])
    q = benjamini_hochberg(p.ravel()).reshape(p.shape)
    return Selectivity(tuple(grouped.names[code] for code in present), auroc, p, q)


def _tested(values: Floats, member: Booleans, strata: Sequence[Integers]) -> tuple[Floats, Floats]:
    """Return AUROC and p of each unit, each (units,)."""
    above, variance = np.zeros((2, values.shape[1]))
    pairs, ties = 0, False
    for rows in strata:
        inside = member[rows]
        members, n = int(inside.sum()), len(inside)
        if not 0 < members < n:
            continue
        ranks = stats.rankdata(values[rows], axis=0)
        above += ranks[inside].sum(axis=0) - members * (members + 1) / 2.0
        # Equal activations take a twelfth of Σ(t³ − t) from the sum of squared ranks.
        equal = 12.0 * (n * (n + 1) * (2 * n + 1) / 6.0 - (ranks**2).sum(axis=0))
        left = np.maximum((n + 1) - equal / (n * (n - 1)), 0.0)
        variance += members * (n - members) / 12.0 * left
        pairs += members * (n - members)
        ties = ties or bool((equal > 0.5).any())
    if not pairs:
        return np.full_like(above, np.nan), np.full_like(above, np.nan)
    with unwarned():
        # Half a pair, of a statistic that counts pairs.
        beyond = np.maximum(np.abs(above - pairs / 2.0) - 0.5, 0.0) / np.sqrt(variance)
    p = np.where(variance > 0, 2.0 * special.ndtr(-beyond), 1.0)
    if len(strata) == 1 and not ties:
        inside = member[strata[0]]
        first, second = values[strata[0]][inside], values[strata[0]][~inside]
        if min(len(first), len(second)) <= _EXACT:
            p = np.asarray(stats.mannwhitneyu(first, second, method="exact").pvalue)
    return above / pairs, np.minimum(p, 1.0)


@record
class Found:
    """Units of a model, the most selective first where they are listed.

    Attributes
    ----------
    model : object
        The model.
    recording : Recording
        Activation of each unit on each image.
    selectivity : Selectivity
        How well each unit tells the groups apart.
    codes : ndarray of int32, shape (n,)
        Group of each image, as a place in `selectivity.groups`; -1 without one.
    """

    model: Any
    recording: Recording
    selectivity: Selectivity
    codes: Integers32

    def table(self, most: int | None = None) -> pa.Table:
        """Return the units, the most selective first.

        Returns
        -------
        pyarrow.Table
            `layer`, `unit`, `group` (that it responds to), `auroc` of that group, `p_value`,
            `q_value`.
        """
        tested, record, rows = self.selectivity, self.recording, []
        for unit, place in tested.strongest()[:most]:
            rows.append(
                {
                    "layer": record.layers[record.layer[unit]],
                    "unit": int(record.unit[unit]),
                    "group": tested.groups[place],
                    "auroc": float(tested.auroc[place, unit]),
                    "p_value": float(tested.p_value[place, unit]),
                    "q_value": float(tested.q_value[place, unit]),
                }
            )
        return pa.Table.from_pylist(rows)


def find_units(
    model: Model,
    images: Images,
    groups: GroupLabels,
    *,
    layers: Sequence[str] | None = None,
    within: Labels | None = None,
) -> Found:
    """Find the units of an image encoder that respond to a group.

    Parameters
    ----------
    model : DualEncoder or Classifier
        That runs on torch.
    images : sequence of n images
    groups : array-like (n,), mapping of attribute to labels, or Groups
    layers
        See `record_units`.
    within
        See `selectivity`.

    Raises
    ------
    ModelError
        When the model cannot be hooked.
    InputError
        When shapes do not fit.
    """
    grouped = Groups.of(groups)
    record = record_units(model, images, layers=layers)
    tested = selectivity(record.values, grouped, within=within)
    places = {name: place for place, name in enumerate(tested.groups)}
    by_code = np.array([places.get(name, -1) for name in grouped.names] + [-1], dtype=np.int32)
    return Found(model, record, tested, by_code[grouped.codes])


def choose_units(
    found: Found, units: int, *, mode: Mode = "balance", alpha: float | None = 0.05
) -> UnitEdit:
    """Choose the most selective units, to be changed while the model runs.

    Parameters
    ----------
    found : Found
        Result of `find_units`.
    units : int
        Most units to choose.
    mode : "balance" or "clamp"
        See `equipoise.models.edits.UnitEdit`.
    alpha : float, optional
        Only units with q at most this; None takes them whatever q.

    Returns
    -------
    UnitEdit
        Means are those of the groups' means, so that a unit's own does not depend on how many
        images of each group were recorded.

    Raises
    ------
    InputError
        When no unit is left, or there is no such mode.
    """
    q = found.selectivity.q_value
    best = np.where(np.isnan(q), 2.0, q).min(axis=0)
    ranked = found.selectivity.strongest()
    kept = [pair for pair in ranked if alpha is None or best[pair[0]] <= alpha][:units]
    if not kept:
        raise InputError(
            f"no unit responds to a group with q at most {alpha}; there is nothing to change"
        )
    return _edit(found, kept, mode)


def random_units(found: Found, units: int, *, mode: Mode = "balance", seed: int = 0) -> UnitEdit:
    """Choose units at random, each with the group it leans to, as a reference for any change.

    Parameters
    ----------
    found, mode
        As in `choose_units`.
    units : int
        At most all there are.
    seed : int
    """
    ranked = sorted(found.selectivity.strongest())
    order = stream(seed, "neurons", "random").permutation(len(ranked))[:units]
    return _edit(found, [ranked[place] for place in sorted(order.tolist())], mode)


def _edit(found: Found, units: list[tuple[int, int]], mode: Mode) -> UnitEdit:
    if mode not in MODES:
        raise InputError(f"there is no mode {mode!r}; expected one of {', '.join(MODES)}")
    record, info = found.recording, found.model.info
    layers = []
    for place, name in enumerate(record.layers):
        here = [pair for pair in sorted(units) if record.layer[pair[0]] == place]
        if not here:
            continue
        columns = [unit for unit, _ in here]
        # Every group counts the same in mean and standard deviation.
        values = record.values[:, columns].astype(np.float64)
        groups = [values[found.codes == code] for code in range(len(found.selectivity.groups))]
        mean = np.mean([group.mean(axis=0) for group in groups], axis=0)
        spread = np.sqrt(np.mean([((group - mean) ** 2).mean(axis=0) for group in groups], axis=0))
        layers.append(
            LayerEdit(
                name,
                record.axes[name],
                tuple(record.unit[columns].tolist()),
                tuple(group for _, group in here),
                tuple(mean.tolist()),
                tuple(np.maximum(spread, _LEAST_SPREAD).tolist()),
            )
        )
    return UnitEdit(info.name, info.revision, info.weights_sha256, mode, tuple(layers))


def sweep_units(
    found: Found,
    trial: Trial,
    counts: Sequence[int] = (1, 2, 4, 8, 16, 32),
    *,
    mode: Mode = "balance",
    alpha: float | None = None,
    random: int = 3,
    replicates: int = 1000,
    seed: int = 0,
) -> pa.Table:
    """Change more and more units, and measure the model each time.

    Parameters
    ----------
    found : Found
        Units of a dual encoder.
    trial : Trial
        Use other images than units were searched in: the result is fitted to those.
    counts : sequence of int
        Numbers of units.
    mode, alpha
        See `choose_units`.
    random : int
        How often as many units are drawn at random, as a reference.
    replicates, seed
        Of the paired bootstrap over images or units.

    Returns
    -------
    pyarrow.Table
        Per number of units, choice ("selected", "random 1", …) and measure: `units`, `chosen`, and
        the columns of `compare_models`.

    Raises
    ------
    InputError
        When counts are not above 0, or no unit responds to a group.
    ModelError
        When the model cannot be hooked.
    """
    if not counts or min(counts) < 1:
        raise InputError(f"counts={list(counts)}: expected numbers of units from 1")
    before = trial.draws(found.model, replicates, seed)
    rows: list[dict[str, Any]] = []
    for units in dict.fromkeys(min(count, found.recording.values.shape[1]) for count in counts):
        edits = {"selected": choose_units(found, units, mode=mode, alpha=alpha)}
        for number in range(random):
            edit = random_units(found, units, mode=mode, seed=seed + number)
            edits[f"random {number + 1}"] = edit
        for chosen, edit in edits.items():
            after = trial.draws(cast("DualEncoder", edited(found.model, edit)), replicates, seed)
            rows += [
                {"units": len(edit), "chosen": chosen} | row for row in change_rows(before, after)
            ]
    return pa.Table.from_pylist(rows)
