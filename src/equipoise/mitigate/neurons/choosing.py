"""Components found, chosen and changed, and the model measured each time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from equipoise.core import (
    Floats,
    GroupLabels,
    Groups,
    InputError,
    Integers32,
    Labels,
    encode,
    record,
)
from equipoise.mitigate.neurons.heads import decompose, record_heads
from equipoise.mitigate.neurons.recording import (
    Items,
    Recording,
    join_recordings,
    record_units,
)
from equipoise.mitigate.neurons.selectivity import Selectivity, selectivity
from equipoise.mitigate.subspace import Centre, find_subspace
from equipoise.mitigate.trials import Trial, change_rows
from equipoise.models.edits import MODES, Mode, Site, UnitEdit, edited
from equipoise.models.images import Images
from equipoise.models.protocols import DualEncoder, Model
from equipoise.models.wrapped import unit_vectors
from equipoise.stats.intervals import percentile
from equipoise.stats.streams import stream

_LEAST_SPREAD = 1e-6
Rank = Literal["auroc", "relevance"]
"""What units are ranked by."""


@record
class Components:
    """Components of a model with their responses to groups.

    Attributes
    ----------
    model : object
        The model.
    recording : Recording
        Activation of each component on each image or text.
    selectivity : Selectivity
        How well each component tells the groups apart.
    codes : ndarray of int32, shape (n,)
        Group of each image or text, as a place in `selectivity.groups`; -1 without one.
    text : str
        That a matching model held against the images.
    share : ndarray of float64, shape (components,), optional
        Of the differential association, the share that the component's part contributes.
    relevance : ndarray of float64, shape (components,), optional
        What components are ranked by in place of the share and the selectivity.
    """

    model: Any
    recording: Recording
    selectivity: Selectivity
    codes: Integers32
    text: str = ""
    share: Floats | None = None
    relevance: Floats | None = None

    def ranked(self) -> list[tuple[int, int]]:
        """Return components with the group they respond to, in order of change.

        By the relevance where it is known, else by the share of the association, else by
        selectivity.
        """
        ranked = self.selectivity.strongest()
        rank = self.share if self.relevance is None else self.relevance
        if rank is not None:
            ranked.sort(key=lambda pair: -abs(float(rank[pair[0]])))
        return ranked

    def table(self, limit: int | None = None) -> pa.Table:
        """Return the components in order of change.

        Returns
        -------
        pyarrow.Table
            `component`, `layer`, `unit`, `group` (that it responds to), `auroc` of that group,
            `p_value`, `q_value`, `share`, `relevance`.
        """
        tested, recorded, rows = self.selectivity, self.recording, []
        for column, place in self.ranked()[:limit]:
            description = {
                "component": recorded.name(column),
                "layer": recorded.sites[recorded.layer[column]].layer,
                "unit": int(recorded.unit[column]),
                "group": tested.groups[place],
            }
            ranks = {
                name: None if values is None else float(values[column])
                for name, values in (("share", self.share), ("relevance", self.relevance))
            }
            rows.append(description | tested.numbers(place, column) | ranks)
        return pa.Table.from_pylist(rows)


def _test_components(
    model: Model, recorded: Recording, groups: GroupLabels, within: Labels | None, text: str = ""
) -> Components:
    grouped = Groups.of(groups)
    tested = selectivity(recorded.values, grouped, within=within)
    places = {name: place for place, name in enumerate(tested.groups)}
    by_code = np.array([places.get(name, -1) for name in grouped.names] + [-1], dtype=np.int32)
    return Components(model, recorded, tested, by_code[grouped.codes], text)


def find_units(
    model: Model,
    items: Items,
    groups: GroupLabels,
    *,
    layers: Sequence[str | Site] | None = None,
    within: Labels | None = None,
    text: str = "",
    rank: Rank = "auroc",
) -> Components:
    """Find units or features of a sparse autoencoder that respond to a group.

    Parameters
    ----------
    model : DualEncoder, Classifier or PairScorer
        That runs on torch.
    items : sequence of n images or str
        Texts run through the text tower of a dual encoder.
    groups : array-like (n,), mapping of attribute to labels, or Groups
    layers, text
        See `record_units`.
    within
        See `selectivity`.
    rank : "auroc" or "relevance"
        What components are ranked by: how well they tell groups apart, or the squared difference
        of the means of two groups over the product of their standard deviations, the largest of
        any two groups.

    Raises
    ------
    ModelError
        When the model cannot be hooked.
    InputError
        When shapes do not fit.

    References
    ----------
    Chen & Dou 2022, "Measuring and Mitigating Bias in Vision-and-Language Models" (relevance).
    """
    recorded = record_units(model, items, layers=layers, text=text)
    components = _test_components(model, recorded, groups, within, text)
    if rank == "relevance":
        return replace(components, relevance=_relevance(components))
    return components


def _relevance(components: Components) -> Floats:
    """Return (difference of means)² / product of standard deviations, the largest of two groups."""
    values = components.recording.values.astype(np.float64)
    members = [
        values[components.codes == code] for code in range(len(components.selectivity.groups))
    ]
    means = [member.mean(axis=0) for member in members]
    spreads = [np.maximum(member.std(axis=0), _LEAST_SPREAD) for member in members]
    pairs = [
        (means[first] - means[second]) ** 2 / (spreads[first] * spreads[second])
        for first, second in combinations(range(len(members)), 2)
    ]
    return np.asarray(np.max(pairs, axis=0))


def find_directions(
    model: DualEncoder,
    items: Items,
    groups: GroupLabels,
    layer: str,
    *,
    pairs: Labels | None = None,
    centre: Centre = "pair",
    within: Labels | None = None,
) -> Components:
    """Find the principal directions of a layer in which groups differ.

    Parameters
    ----------
    model : DualEncoder
        That runs on torch.
    items, groups, within
        As in `find_units`.
    layer : str
        Its outputs are vectors, such as those of a projection.
    pairs, centre
        See `find_subspace`.

    Returns
    -------
    Components
        Components are directions of the outputs' unit vectors, the one with the most variance
        first. Mode "remove" projects them out.

    Raises
    ------
    ModelError
        When the model cannot be hooked.
    InputError
        When shapes do not fit, or pairs are missing.
    """
    grouped = Groups.of(groups)
    recorded = record_units(model, items, layers=[layer])
    names = np.array([*grouped.names, ""], dtype=np.object_)[grouped.codes]
    rows = np.flatnonzero(grouped.codes >= 0)
    paired = None
    if pairs is not None:
        codes, labels = encode(pairs, subject="pairs")
        paired = np.array([*labels, ""], dtype=np.object_)[codes][rows]
    vectors = unit_vectors(recorded.values)
    basis = find_subspace(vectors[rows], names[rows], paired, centre=centre).astype(np.float32)
    if not len(basis):
        raise InputError(f"the outputs of the layer {layer!r} don't vary; there is no direction")
    (site,) = recorded.sites
    center = np.mean(
        [
            recorded.values[grouped.codes == code].mean(axis=0)
            for code in np.unique(grouped.codes[rows])
        ],
        axis=0,
    )
    site = replace(
        site, read=basis, write=basis, means=tuple(center.tolist()), name=f"subspace of {layer}"
    )
    directions = join_recordings([recorded.values @ basis.T], [site])
    components = _test_components(model, directions, grouped, within)
    return replace(components, relevance=np.arange(len(basis), 0.0, -1.0))


def find_heads(
    model: DualEncoder,
    images: Images,
    groups: GroupLabels,
    concepts: Mapping[str, Sequence[str]],
    *,
    within: Labels | None = None,
) -> Components:
    """Find the attention heads and MLPs that carry a differential association.

    Parameters
    ----------
    model : DualEncoder
        A CLIP of transformers that runs on torch.
    images, groups, within
        As in `find_units`.
    concepts
        See `Trial`.

    Returns
    -------
    Components
        Components are the directions in which a part's output at the class token separates the
        groups, ranked by the part's own share of the association.

    Raises
    ------
    ModelError
        When the model is another one.
    InputError
        When shapes do not fit.
    """
    grouped = Groups.of(groups)
    recorded = record_heads(model, images, grouped, within=within)
    trial = Trial(images, grouped, concepts, k=1)
    shares = {row["part"]: row["share"] for row in association_parts(model, trial).to_pylist()}
    share = np.array([shares[recorded.sites[place].name] for place in recorded.layer.tolist()])
    return replace(_test_components(model, recorded, grouped, within), share=share)


def association_parts(
    model: DualEncoder, trial: Trial, *, replicates: int = 0, seed: int = 0
) -> pa.Table:
    """Split the differential association of a CLIP into contributions of its parts.

    Parameters
    ----------
    model : DualEncoder
        A CLIP of transformers that runs on torch.
    trial : Trial
    replicates, seed
        Of the bootstrap over images or units.

    Returns
    -------
    pyarrow.Table
        `part`, `value` with `low` and `high` (missing without replicates), and `share` of the
        association, which the values sum to.

    Raises
    ------
    ModelError
        When the model is another one.
    """
    parts = decompose(model, trial.images)
    vectors = parts.values.sum(axis=1)
    first, second, *_ = trial.text_means(model)
    towards = parts.values @ (first - second) / np.linalg.norm(vectors, axis=1, keepdims=True)
    values = trial.gaps(towards.astype(np.float64), replicates, seed)
    low, high = percentile(values[1:]) if replicates else np.full((2, len(parts.parts)), np.nan)
    columns = {"part": parts.parts, "value": values[0], "low": low, "high": high}
    return pa.table(columns | {"share": values[0] / values[0].sum()})


def choose_units(
    components: Components,
    units: int,
    *,
    mode: Mode = "balance",
    alpha: float | None = 0.05,
    full_output: bool = False,
) -> UnitEdit:
    """Choose the first components to edit.

    Parameters
    ----------
    components : Components
        Result of `find_units` or `find_heads`.
    units : int
        Most components to choose.
    mode : "balance", "clamp", "remove" or "reverse"
        See `equipoise.models.edits.UnitEdit`.
    alpha : float, optional
        Only components with q at most this; None takes them whatever q.
    full_output : bool
        Of heads and MLPs: change all that they write, not a direction.

    Returns
    -------
    UnitEdit
        Means are those of the groups' means, so that a component's own does not depend on how many
        images of each group were recorded.

    Raises
    ------
    InputError
        When no component is left, there is no such mode, or units are to be changed whole.
    """
    q = components.selectivity.q_value
    best = np.where(np.isnan(q), 2.0, q).min(axis=0)
    chosen = components.ranked()
    if alpha is not None:
        chosen = [pair for pair in chosen if best[pair[0]] <= alpha]
    chosen = chosen[:units]
    if not chosen:
        raise InputError(
            f"no component responds to a group with q at most {alpha}; there is nothing to change"
        )
    if mode not in MODES:
        raise InputError(f"there is no mode {mode!r}; expected one of {', '.join(MODES)}")
    recorded = components.recording
    layers = []
    for place, site in enumerate(recorded.sites):
        site_pairs = [pair for pair in sorted(chosen) if recorded.layer[pair[0]] == place]
        if site_pairs and full_output:
            layers.append(_edit_output(site, site_pairs[0][1]))
        elif site_pairs:
            layers.append(_edit_components(components, site, site_pairs))
    return _make_edit(components, mode, layers)


def _make_edit(components: Components, mode: Mode, layers: Sequence[Site]) -> UnitEdit:
    info = components.model.info
    return UnitEdit(info.name, info.revision, info.weights_sha256, mode, tuple(layers))


def _edit_components(components: Components, site: Site, pairs: Sequence[tuple[int, int]]) -> Site:
    """Return the change of some components of a site."""
    columns, sets = (list(values) for values in zip(*pairs, strict=True))
    # Every group counts the same in mean and standard deviation.
    values = components.recording.values[:, columns].astype(np.float64)
    groups = [
        values[components.codes == code] for code in range(len(components.selectivity.groups))
    ]
    mean = np.mean([group.mean(axis=0) for group in groups], axis=0)
    spread = np.sqrt(np.mean([((group - mean) ** 2).mean(axis=0) for group in groups], axis=0))
    return replace(
        site.select(components.recording.unit[columns].tolist()),
        sets=tuple(sets),
        means=tuple(mean.tolist()),
        spreads=tuple(np.maximum(spread, _LEAST_SPREAD).tolist()),
    )


def _edit_output(site: Site, group: int) -> Site:
    if not site.means:
        raise InputError("full_output: only heads and MLPs can be changed whole; choose components")
    width = len(site.means)
    return replace(site, read=None, write=None, sets=(group,) * width, spreads=(1.0,) * width)


def join_edits(edits: Sequence[UnitEdit]) -> UnitEdit:
    """Return one edit that makes several changes of a model."""
    first, *_ = edits
    return replace(first, layers=tuple(site for edit in edits for site in edit.layers))


def random_units(components: Components, like: UnitEdit, *, seed: int = 0) -> UnitEdit:
    """Choose components of the same layers at random, as a reference for a change.

    Parameters
    ----------
    components : Components
        That the edit was chosen from.
    like : UnitEdit
        As many components of each of its layers are drawn: units and features that may be any;
        of heads and MLPs random directions of any of the layer, or any head whole.
    seed : int
    """
    random = stream(seed, "neurons", "random")
    recorded, lean = components.recording, dict(components.selectivity.strongest())
    layers: list[Site] = []
    for edit_site in like.layers:
        pool = [place for place, name in enumerate(recorded.layers) if name == edit_site.layer]
        site = recorded.sites[pool[int(random.integers(len(pool)))]]
        if site.means and edit_site.read is None:
            layers.append(_edit_output(site, 0))
        elif site.means:
            normal = random.standard_normal((len(site.means), len(edit_site)))
            rows = np.linalg.qr(normal)[0].T.astype(np.float32)
            means = tuple((rows @ np.array(site.means)).tolist())
            layers.append(replace(edit_site, units=site.units, read=rows, write=rows, means=means))
        else:
            columns = random.permutation(np.flatnonzero(recorded.layer == pool[0]))[
                : len(edit_site)
            ]
            pairs = [(column, lean[column]) for column in sorted(columns.tolist())]
            layers.append(_edit_components(components, site, pairs))
    return _make_edit(components, like.mode, layers)


def sweep_units(
    components: Components | Sequence[Components],
    trial: Trial,
    counts: Sequence[int] = (1, 2, 4, 8, 16, 32),
    *,
    mode: Mode = "balance",
    alpha: float | None = None,
    random: int = 100,
    replicates: int = 1000,
    seed: int = 0,
) -> pa.Table:
    """Change more and more components, and measure the model each time.

    Parameters
    ----------
    components : Components, or sequence of Components
        Components of a dual encoder or a matching model. Of several, such as of both towers, as
        many of each are changed together.
    trial : Trial
        Use other images than components were searched in: the result is fitted to those.
    counts : sequence of int
        Numbers of components; 0 is the model as it is.
    mode, alpha
        See `choose_units`.
    random : int
        How often as many components of the same layers are drawn at random.
    replicates, seed
        Of the paired bootstrap over images or units.

    Returns
    -------
    pyarrow.Table
        Per number of components and measure: `units`, the columns of `compare_models`, the mean
        difference of the random draws (`random`) with its middle 95 % (`random_low`,
        `random_high`), and `p_value`: of the draws and the choice itself, the share that differ as
        much from before.

    Raises
    ------
    InputError
        When counts are below 0, or no component responds to a group.
    ModelError
        When the model cannot be hooked.
    """
    if not counts or min(counts) < 0:
        raise InputError(f"counts={list(counts)}: expected numbers of units from 0")
    parts = [components] if isinstance(components, Components) else [*components]
    before = trial.draws(parts[0].model, replicates, seed)
    rows: list[dict[str, Any]] = []
    chosen = [
        [choose_units(part, n, mode=mode, alpha=alpha) for part in parts] for n in counts if n
    ]
    # Where fewer respond than the number, two edits are one.
    sizes = {tuple(map(len, edits)): edits for edits in chosen}
    if 0 in counts:
        rows += [
            {"units": 0} | row | _reference(0.0, np.empty(0)) for row in change_rows(before, before)
        ]
    for edits in sizes.values():
        after = trial.draws(edited(parts[0].model, join_edits(edits)), replicates, seed)
        reference_draws = []
        for number in range(random):
            references = [
                random_units(part, edit, seed=seed + number)
                for part, edit in zip(parts, edits, strict=True)
            ]
            reference = edited(parts[0].model, join_edits(references))
            reference_draws.append(trial.draws(reference, 0, seed))
        for row in change_rows(before, after):
            name = str(row["measure"])
            reference_differences = np.array(
                [draws[name][0] - before[name][0] for draws in reference_draws]
            )
            rows.append(
                {"units": max(map(len, edits))}
                | row
                | _reference(float(row["difference"]), reference_differences)
            )
    return pa.Table.from_pylist(rows)


def _reference(value: float, reference: Floats) -> dict[str, float | None]:
    if not len(reference):
        return dict.fromkeys(("random", "random_low", "random_high", "p_value"))
    low, high = percentile(reference)
    as_far = int((np.abs(reference) >= abs(value)).sum())
    return {
        "random": float(reference.mean()), "random_low": float(low), "random_high": float(high),
        "p_value": (1 + as_far) / (1 + len(reference)),
    }  # fmt: skip
