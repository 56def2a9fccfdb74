"""What all families of transformers share: reading a checkpoint, and what is told about it."""

import json
from dataclasses import dataclass
from typing import Any

from equipoise.core.errors import MissingExtraError, ModelError
from equipoise.models.hf_files import Checkpoint
from equipoise.models.info import ModelInfo
from equipoise.models.options import Options
from equipoise.models.preparing import Preparation, preparation
from equipoise.models.recipe import of_transformers
from equipoise.models.runtimes import Placement, quiet
from equipoise.models.towers import Call, Tower, build_tower


@dataclass(frozen=True)
class Source:
    """A checkpoint that is about to be loaded.

    Attributes
    ----------
    checkpoint : Checkpoint
        Its files.
    options : Options
        What was asked.
    placement : Placement
        Where it will run.
    library : module
        transformers.
    """

    checkpoint: Checkpoint
    options: Options
    placement: Placement
    library: Any

    def model(self, loader: str) -> Any:
        """Load the weights, ready for inference.

        Parameters
        ----------
        loader : str
            Name of a class of transformers.

        Raises
        ------
        ModelError
            If the checkpoint cannot be read, or lacks weights that the class needs: the library
            would fill them with random numbers.
        """
        code = {"trust_remote_code": True} if self.options.trust_remote_code else {}
        with quiet(self.library):
            try:
                model, told = getattr(self.library, loader).from_pretrained(
                    self.checkpoint.folder,
                    dtype=self.placement.torch_dtype,
                    use_safetensors=self.checkpoint.safe,
                    local_files_only=True,
                    output_loading_info=True,
                    **code,
                )
            except Exception as error:
                raise ModelError(f"{self.checkpoint.asked} cannot be loaded: {error}") from error
        self._refuse_random(sorted(told["missing_keys"]))
        return model.to(self.placement.device).eval()

    def _refuse_random(self, missing: list[str]) -> None:
        if missing:
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            raise ModelError(
                f"{self.checkpoint.asked} lacks weights that it needs "
                f"({', '.join(missing[:3])}{more}); they would be random numbers."
            )

    def part(self, loader: str) -> Any:
        """Load what travels with the weights: a tokenizer, an image processor, or both.

        Parameters
        ----------
        loader : str
            ``AutoTokenizer``, ``AutoImageProcessor`` or ``AutoProcessor``.

        Raises
        ------
        MissingExtraError
            If it needs torchvision: the processors of chat models that also see videos do.
        ModelError
            If there is none, or it cannot be loaded.
        """
        with quiet(self.library):
            try:
                return getattr(self.library, loader).from_pretrained(
                    self.checkpoint.folder,
                    local_files_only=True,
                    trust_remote_code=self.options.trust_remote_code,
                )
            except Exception as error:
                if isinstance(error, ImportError) and "torchvision" in str(error).lower():
                    raise MissingExtraError("torchvision", "chat") from error
                raise ModelError(
                    f"{self.checkpoint.asked} has no {PARTS[loader]} that can be loaded: {error}"
                ) from error

    def preparation(self, processor: Any) -> Preparation:
        """Choose how images are prepared: as an image processor of transformers does."""
        settings = json.loads(processor.to_json_string())
        # Code that came with a checkpoint may do what no setting says.
        own = type(processor).__module__.partition(".")[0] == "transformers"
        return preparation(
            self.options.name,
            lambda images: processor(images=[*images], return_tensors="pt"),
            of_transformers(settings, getattr(processor, "backend", "")) if own else None,
            self.placement.torch,
            choice=self.options.preprocessing,
        )

    def tower(self, model: Any, call: Call, prepare: Preparation) -> Tower:
        """Make the tower that sees images."""
        with quiet(self.library):
            return build_tower(self.placement, self.options, model, call, prepare)

    def info(
        self,
        family: str,
        preprocessing: dict[str, Any],
        tower: Tower | None = None,
        **facts: Any,
    ) -> ModelInfo:
        """Gather what is known of the model."""
        placement = tower.placement if tower else self.placement
        files, weights = self.checkpoint.digests(self.options.trust_remote_code)
        return ModelInfo(
            name=self.options.name,
            family=family,
            weights_sha256=weights,
            files=files,
            revision=self.checkpoint.revision,
            dtype=placement.dtype,
            device=placement.device,
            backend=placement.backend,
            preprocessing=preprocessing,
            versions={
                "torch": str(placement.torch.__version__),
                "transformers": self.library.__version__,
            }
            | (tower.versions if tower else {}),
            **facts,
        )


PARTS = {
    "AutoTokenizer": "tokenizer",
    "AutoImageProcessor": "image processor",
    "AutoProcessor": "processor",
}


def image_facts(processor: Any) -> dict[str, Any]:
    """Return which image processor runs, on which backend, with which settings."""
    return {
        "image_processor": type(processor).__name__,
        "image_backend": getattr(processor, "backend", ""),
        "image_settings": json.loads(processor.to_json_string()),
    }


def text_facts(tokenizer: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return which tokenizer runs, and how it pads and cuts."""
    return {"tokenizer": type(tokenizer).__name__, "text": dict(settings)}
