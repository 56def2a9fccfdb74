"""Training images of an experiment: as they are, with mixed faces, with noisy faces."""

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import Field

from equipoise.config.fields import Section
from equipoise.mitigate.augmentation.faces import Faces, MixedFaces, NoisyFaces, PlainFaces

Arm = Literal["biased", "partial mixing", "uniform noise", "balanced"]
ARMS: tuple[Arm, ...] = get_args(Arm)
"""Training images of a network, in the order of the source's Table 10.1."""
PositiveShare = Annotated[float, Field(gt=0, le=1)]


class Mixing(Section):
    """Mixed faces.

    Attributes
    ----------
    share : float
        Share of the faces that are mixed.
    partners : {"all", "label"}
        Faces of the other group that are mixed in: all, or those with the same label.
    """

    share: PositiveShare = 1.0
    partners: Literal["all", "label"] = "all"


class Noise(Section):
    """Noisy faces.

    Attributes
    ----------
    kind : {"replaces", "added"}
        Whether noise covers a face or is added to it.
    strength : float
        Upper end of added noise, where white is 1.
    share : float
        Share of the faces that get noise.
    """

    kind: Literal["replaces", "added"] = "replaces"
    strength: PositiveShare = 1.0
    share: PositiveShare = 0.5


class Changes(Section):
    """Changes of the biased images.

    Attributes
    ----------
    mixing : Mixing
    noise : Noise
    keep_originals : bool
        Changed images join the originals, which stay as they are, instead of replacing them.
    """

    mixing: Mixing = Mixing()
    noise: Noise = Noise()
    keep_originals: bool = False

    def training_data(self, arm: str, sets: Mapping[str, Faces], seed: int) -> PlainFaces:
        """Return the training images of an arm."""
        if arm == "partial mixing":
            return MixedFaces(
                sets["biased"], seed=seed, keep_originals=self.keep_originals,
                share=self.mixing.share, partners=self.mixing.partners,
            )  # fmt: skip
        if arm == "uniform noise":
            return NoisyFaces(
                sets["biased"], seed=seed, keep_originals=self.keep_originals,
                share=self.noise.share, added=self.noise.kind == "added",
                strength=self.noise.strength,
            )  # fmt: skip
        return PlainFaces(sets[arm], seed=seed)

    def described(self, arm: str) -> str:
        """Return the settings of an arm as text; trainings with others are other trainings."""
        settings = {"partial mixing": self.mixing, "uniform noise": self.noise}.get(arm)
        return "" if settings is None else f"{settings!r} {self.keep_originals}"
