"""What an encoder says of the planted hues in generated images: association scores by subject."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equipoise.metrics import corrected_shares, mcas
from equipoise.planted.scenes.captions import attributed_prompts, neutral_prompts
from equipoise.planted.scenes.diffusion.measure import Neutral, Told, spearman
from equipoise.planted.scenes.render import HUES, SUBJECTS
from equipoise.planted.scenes.variants import World

if TYPE_CHECKING:
    from equipoise.models.protocols import DualEncoder

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AssociationsFound:
    """How generated images and prompts of each subject lean to its favourite hue.

    Attributes
    ----------
    strength : ndarray, shape (subjects,)
        Planted.
    scores : mapping of str to ndarray, shape (subjects,)
        ``mcas`` and its parts ``II``, ``ITP``, ``ITA`` and ``TT``: above 0, towards the favourite.
    """

    strength: Floats
    scores: Mapping[str, Floats]

    @property
    def rank_correlations(self) -> dict[str, float]:
        """Spearman's correlation over subjects of each score with the strength planted."""
        return {name: spearman(self.strength, values) for name, values in self.scores.items()}


def find_associations(
    encoder: "DualEncoder", neutral: Neutral, told: Told, world: World
) -> AssociationsFound:
    """Measure how far an encoder places each subject nearer to its favourite hue than to others.

    Targets are the images and prompts of a subject that name no hue. The favourite's attribute
    images are those of prompts that name it, for whatever subject, and its texts all such prompts;
    the others are those of the five other hues together.

    Parameters
    ----------
    encoder : DualEncoder
        Such as `embed.load_clip`.
    neutral : Neutral
        From `measure.leave_open`.
    told : Told
        From `measure.tell`.
    world : World
        Whose favourites to look for.
    """
    targets, shown = (encoder.embed_images(one.images) for one in (neutral, told))
    texts = [
        encoder.embed_texts([t for s in SUBJECTS for t in attributed_prompts(s, hue)])
        for hue in HUES
    ]
    rows: dict[str, list[float]] = {name: [] for name in ("mcas", "II", "ITP", "ITA", "TT")}
    for place, favourite in enumerate(world.hue):
        asked = told.asked.hue == favourite
        found = mcas(
            targets[neutral.asked == place],
            encoder.embed_texts(neutral_prompts(SUBJECTS[place])),
            shown[asked],
            texts[favourite],
            shown[~asked],
            np.concatenate([one for hue, one in enumerate(texts) if hue != favourite]),
            resampling=None,
        )
        rows["mcas"].append(found.value)
        for part in found.by.to_pylist() if found.by is not None else ():
            rows[part["metric"]].append(part["value"])
    return AssociationsFound(world.hue_strength, {k: np.array(v) for k, v in rows.items()})


def distance_from_parity(neutral: Neutral) -> Floats:
    """Return MAD of the shares of hues of each subject's images, shape (subjects,).

    The sum over hues of how far the share of each is from their mean, 1 / 6: whichever hue it is
    that stands out.
    """
    names = np.array(HUES)[neutral.shown.hue]
    return np.array(
        [
            corrected_shares(
                names[neutral.asked == place], None, classes=HUES, resampling=None
            ).value
            for place in range(len(SUBJECTS))
        ]
    )
