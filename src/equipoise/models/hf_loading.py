"""What all families of transformers share: reading a checkpoint, and what is told about it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.core.errors import InputError, MissingExtraError, ModelError
from equipoise.models.hf_files import Checkpoint
from equipoise.models.images import pillow_images
from equipoise.models.info import ModelInfo
from equipoise.models.options import Options
from equipoise.models.runtimes import Placement, quiet


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

    def info(self, family: str, preprocessing: dict[str, Any], **facts: Any) -> ModelInfo:
        """Gather what is known of the model."""
        files, weights = self.checkpoint.digests(self.options.trust_remote_code)
        return ModelInfo(
            name=self.options.name,
            family=family,
            weights_sha256=weights,
            files=files,
            revision=self.checkpoint.revision,
            dtype=self.placement.dtype,
            device=self.placement.device,
            preprocessing=preprocessing,
            versions={
                "torch": str(self.placement.torch.__version__),
                "transformers": self.library.__version__,
            },
            **facts,
        )


PARTS = {
    "AutoTokenizer": "tokenizer",
    "AutoImageProcessor": "image processor",
    "AutoProcessor": "processor",
}


def prepared(processor: Any, images: Sequence[Any], name: str) -> Any:
    """Return images as an image processor prepares them.

    Parameters
    ----------
    processor : object
        An image processor of transformers.
    images : sequence
        See `equipoise.models.images.as_rgb`.
    name : str
        The model, for the message.

    Raises
    ------
    InputError
        If it cannot take one of them, for example because the image is too narrow to be resized;
        the message names the first.
    """
    pillow = pillow_images(images)
    try:
        return processor(images=pillow, return_tensors="pt")
    except Exception:
        for position, image in enumerate(pillow):
            _try_alone(processor, image, f"Image {position}", name)
        raise


def _try_alone(processor: Any, image: Any, which: str, name: str) -> None:
    try:
        processor(images=[image], return_tensors="pt")
    except Exception as error:
        raise InputError(
            f"{which}, {image.width} × {image.height} pixels, cannot be prepared for {name}: "
            f"{error}"
        ) from error


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
