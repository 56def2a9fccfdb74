"""Contributions of attention heads and MLPs to the image vectors of a CLIP."""

from dataclasses import replace

import numpy as np

from equipoise.core import (
    Floats,
    Floats32,
    Groups,
    Labels,
    ModelError,
    encode,
    record,
)
from equipoise.mitigate.neurons.recording import Recording, join_recordings, record_units
from equipoise.models.edits import Insides, Site, insides
from equipoise.models.images import Images
from equipoise.models.protocols import Model

_TOWER = "vision_model"
_START, _END = f"{_TOWER}.pre_layrnorm", f"{_TOWER}.post_layernorm"
# Directions along which groups' means differ by less are rounding.
_LEAST = 1e-6


@record
class Decomposition:
    """Contributions of the parts of a tower to the vectors of n images.

    Attributes
    ----------
    parts : tuple of str
        "head 0 of layer 0", …, "MLP of layer 0", …, "embedding", "biases".
    values : ndarray of float32, shape (n, parts, dimension)
        They sum to the vectors of the images. The last normalisation divides each image's parts by
        the spread of the whole, which is taken as fixed.
    """

    parts: tuple[str, ...]
    values: Floats32


def head_sites(inside: Insides) -> tuple[Site, ...]:
    """Return the heads and MLPs of the image tower of a CLIP, at its class token.

    Raises
    ------
    ModelError
        When the model is no CLIP of transformers.
    """
    if type(inside.module).__name__ != "CLIPModel":
        raise ModelError(
            f"{inside.name} is a {type(inside.module).__name__}; heads are known of a CLIPModel of "
            "transformers alone. To do: name a CLIP with hf:, or look at units"
        )
    config = inside.module.config.vision_config
    width = config.hidden_size // config.num_attention_heads
    sites = []
    for number in range(config.num_hidden_layers):
        layer = f"{_TOWER}.encoder.layers.{number}"
        for head in range(config.num_attention_heads):
            units = tuple(range(head * width, (head + 1) * width))
            name = f"head {head} of layer {number}"
            attention = f"{layer}.self_attn.out_proj"
            sites.append(Site(attention, units=units, side="input", first=True, name=name))
        sites.append(Site(f"{layer}.mlp", first=True, name=f"MLP of layer {number}"))
    return tuple(sites)


def decompose(model: Model, images: Images) -> Decomposition:
    """Split the vectors of images into contributions of heads and MLPs.

    Parameters
    ----------
    model : DualEncoder
        A CLIP of transformers that runs on torch.
    images : sequence of n images

    Raises
    ------
    ModelError
        When the model is another one.

    References
    ----------
    Gandelsman et al. 2024, "Interpreting CLIP's Image Representation via Text-Based
    Decomposition".
    """
    inside = insides(model)
    sites = (
        *head_sites(inside),
        Site(_START, first=True, name="embedding"),
        Site(_END, side="input"),
    )
    recorded = record_units(model, images, layers=sites)
    outputs = {}
    for site, output in zip(recorded.sites, _split_by_site(recorded), strict=True):
        outputs[site.name] = output
    weights = {
        name: parameter.detach().cpu().double().numpy()
        for name, parameter in inside.module.named_parameters()
        if name.startswith((_TOWER, "visual_projection"))
    }
    final, parts = outputs.pop(""), {}
    layers = dict.fromkeys(site.layer for site in sites if site.side == "input" and site.name)
    for site in sites[:-1]:
        output = outputs[site.name]
        if site.side == "input":
            output = output @ weights[f"{site.layer}.weight"][:, [*site.units]].T
        parts[site.name] = output
    parts["biases"] = np.tile(sum(weights[f"{layer}.bias"] for layer in layers), (len(final), 1))
    scale = np.sqrt(final.var(axis=1, keepdims=True) + inside.layer(_END).eps)
    projection = weights["visual_projection.weight"].T
    values = np.stack(
        [
            (part - part.mean(axis=1, keepdims=True))
            / scale
            * weights[f"{_END}.weight"]
            @ projection
            for part in parts.values()
        ],
        axis=1,
    )
    values[:, -1] += weights[f"{_END}.bias"] @ projection
    return Decomposition(tuple(parts), values.astype(np.float32))


def record_heads(
    model: Model, images: Images, groups: Groups, *, within: Labels | None = None
) -> Recording:
    """Record heads and MLPs along the directions in which they separate groups.

    The directions of a part are those of the differences between the groups' mean outputs less the
    mean of their stratum, one fewer than groups, the one with the largest differences first.

    Parameters
    ----------
    model : DualEncoder
        A CLIP of transformers that runs on torch.
    images : sequence of n images
    groups : Groups
    within
        See `selectivity`.

    Raises
    ------
    ModelError
        When the model is another one.
    """
    recorded = record_units(model, images, layers=head_sites(insides(model)))
    strata = encode(["all"] * len(images) if within is None else within, what="within")[0]
    members = [groups.codes == code for code in np.flatnonzero(groups.counts > 0)]
    sites, values = [], []
    for site, outputs in zip(recorded.sites, _split_by_site(recorded), strict=True):
        center = np.mean([outputs[member].mean(axis=0) for member in members], axis=0)
        stratum_means = []
        for stratum in range(strata.max() + 1):
            stratum_means.append(outputs[strata == stratum].mean(axis=0))
        deviations = outputs - np.stack(stratum_means)[strata]
        means = np.stack([deviations[member].mean(axis=0) for member in members])
        _, sizes, directions = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
        basis = directions[: max(1, int((sizes > _LEAST).sum()))]
        # More of a direction is more of the first group.
        basis = (basis * np.where(basis @ means[0] < 0, -1.0, 1.0)[:, None]).astype(np.float32)
        sites.append(replace(site, read=basis, write=basis, means=tuple(center.tolist())))
        values.append((outputs @ basis.T).astype(np.float32))
    return join_recordings(values, sites)


def _split_by_site(recorded: Recording) -> list[Floats]:
    return [
        recorded.values[:, recorded.layer == place].astype(np.float64)
        for place in range(len(recorded.sites))
    ]
