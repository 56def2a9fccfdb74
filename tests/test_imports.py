"""Commands stay quick: none loads a heavy library that it does not use."""

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


AUDIT = """
import sys
from equipoise.cli import main
try:
    main(["audit", sys.argv[1], "--out", sys.argv[2]])
except SystemExit as end:
    assert end.code in (0, None), end.code
"""

CONFIG = """\
audit: predictions
data: {table: rows.csv, id: id, target: truth, groups: [group]}
models: {model: {table: rows.csv, id: id, prediction: model}}
"""


def modules_after(code, *arguments):
    """Run code in a fresh interpreter; return the modules it has loaded by the end."""
    done = alone(f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)", *arguments)
    assert done.returncode == 0, done.stderr
    return {*done.stderr.split()}


ARRAYS = {"numpy", "pyarrow", "pydantic"}


@pytest.mark.parametrize(
    ("code", "unused"),
    [("import equipoise", ARRAYS), ("import equipoise.core", set()), (HELP, ARRAYS)],
    ids=["package", "core", "help"],
)
def test_no_heavy_library_is_loaded(code, unused):
    loaded = {name.partition(".")[0] for name in modules_after(code)}
    assert loaded.isdisjoint(HEAVY | unused)


def test_a_small_audit_loads_only_modules_that_it_uses(tmp_path):
    rows = [f"{i},{'ab'[i % 2]},{'ab'[i % 3 % 2]},{'xyz'[i // 2 % 3]}" for i in range(180)]
    (tmp_path / "rows.csv").write_text("\n".join(["id,truth,model,group", *rows]))
    (tmp_path / "audit.yaml").write_text(CONFIG)
    loaded = modules_after(AUDIT, tmp_path / "audit.yaml", tmp_path / "run")
    # pyarrow loads pandas where it is installed.
    used = {"jinja2", "pandas", "polars", "scipy"}
    assert HEAVY.intersection(loaded) == used & loaded
    assert loaded.isdisjoint({"scipy.optimize", "scipy.sparse", "scipy.stats"})
