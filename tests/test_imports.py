"""Importing the package and asking for help stay quick: no heavy library is loaded for either."""

import pytest

from alone import alone

HEAVY = {
    "altair",
    "cv2",
    "diffusers",
    "huggingface_hub",
    "jinja2",
    "matplotlib",
    "numba",
    "onnxruntime",
    "open_clip",
    "openvino",
    "pandas",
    "polars",
    "pytorch_grad_cam",
    "ray",
    "scipy",
    "sklearn",
    "timm",
    "torch",
    "torchvision",
    "transformers",
}

HELP = """
from equipoise.cli import main
sys.argv = ["equipoise", "--help"]
try:
    main()
except SystemExit as end:
    assert end.code in (0, None), end.code
"""


def heavy_modules_after(code):
    """Run code in a fresh interpreter; return which heavy libraries it has loaded by the end."""
    listing = "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    done = alone(f"import sys\n{code}\n{listing}")
    assert done.returncode == 0, done.stderr
    return HEAVY.intersection(done.stderr.split())


@pytest.mark.parametrize(
    "code", ["import equipoise", "import equipoise.core", HELP], ids=["package", "core", "help"]
)
def test_no_heavy_library_is_loaded(code):
    assert heavy_modules_after(code) == set()
