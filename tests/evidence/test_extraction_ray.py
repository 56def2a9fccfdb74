"""The same extraction on a Ray cluster of two local nodes; in processes of their own."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from alone import alone
from equipoise.evidence import ExtractionSettings, extract_embeddings, pictures_in_folder
from equipoise.planted.scenes.embed import WEIGHTS
from picture_models import write_pictures

CLIP = f"hf:{WEIGHTS}/clip-biased"

PROGRAM = """
import json, os, sys
from dataclasses import replace
from pathlib import Path
from picture_models import Means
from equipoise.core.errors import EquipoiseError
from equipoise.evidence import (
    ExtractionSettings, extract_answers, extract_embeddings, pictures_in_folder,
)

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
from ray.cluster_utils import Cluster

nodes = Cluster(
    initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
)
nodes.add_node(num_cpus=1)
ray.init(address=nodes.address, log_to_driver=False)
photos, store, clip = sys.argv[1:]
# Paths are relative to the folder of the command, which isn't where the nodes were started.
os.chdir(Path(photos).parent)
pictures = pictures_in_folder(Path("photos"))
settings = ExtractionSettings(engine="ray", part=16, max_failures=0.05)
told = []

def tell(*step):
    told.append(step)

watched = replace(settings, progress=tell)
extraction = extract_embeddings(pictures, clip, Path(store), settings=watched)
place = extract_answers(
    pictures, "Where?", "python:picture_models:nodes", Path(store), settings=settings
)
again = extract_answers(
    pictures, "Where?", "python:picture_models:nodes", Path(store), settings=settings
)
said = {
    "folder": str(extraction.folder), "computed": [extraction.computed, again.computed],
    "told": told, "nodes": len({*place.table["answer"].to_pylist()}), "errors": [],
}
for model in ("python:picture_models:nothing", "python:picture_models:new_means", Means()):
    ask = extract_answers if isinstance(model, str) and "new" in model else extract_embeddings
    try:
        question = ("Who?",) if ask is extract_answers else ()
        ask(pictures, *question, model, Path(store), settings=settings)
    except EquipoiseError as error:
        said["errors"].append(f"{type(error).__name__}: {error}")
print("said", json.dumps(said))
ray.shutdown()
nodes.shutdown()
"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray") / "photos"
    write_pictures(folder, 100, size=40)
    (folder / "00042.png").write_bytes(b"no picture")
    return folder


@pytest.fixture(scope="module")
def cluster(photos):
    store = photos.parent / "store"
    done = alone(PROGRAM, photos, store, CLIP, RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")
    lines = [line for line in done.stdout.splitlines() if line.startswith("said ")]
    assert lines, done.stderr
    return json.loads(lines[0].removeprefix("said "))


@pytest.fixture(scope="module")
def native(photos):
    return extract_embeddings(
        pictures_in_folder(photos),
        CLIP,
        photos.parent / "native",
        settings=ExtractionSettings(part=16),
    )


def test_the_cluster_gives_the_same_rows(cluster, native):
    folder = Path(cluster["folder"])
    assert folder.name == native.folder.name
    parts = sorted(folder.glob("part-*.parquet"))
    assert [path.name for path in parts] == [path.name for path in native.parts]
    rows = [pq.read_table(part) for part in parts]
    ids = [name for table in rows for name in table["image_id"].to_pylist()]
    assert ids == native.table["image_id"].to_pylist()
    vectors = np.concatenate([np.stack(t["embedding"].to_numpy()) for t in rows if t.num_rows])
    native_vectors = np.stack(native.table["embedding"].to_numpy())
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(native_vectors, axis=1)
    assert ((vectors * native_vectors).sum(axis=1) / lengths).min() >= 0.999999
    assert pq.read_table(folder / "failures.parquet").equals(native.failures)
    assert native.failures["image_id"].to_pylist() == ["00042.png"]


def test_the_cluster_resumes_and_so_does_this_process(cluster, photos):
    assert cluster["computed"] == [99, 0]
    pictures = pictures_in_folder(photos)
    assert (
        extract_embeddings(
            pictures, CLIP, photos.parent / "store", settings=ExtractionSettings(part=16)
        ).computed
        == 0
    )


def test_every_node_works(cluster):
    assert cluster["nodes"] == 2


def test_errors_of_a_worker_are_raised_here(cluster):
    missing, other, loaded = cluster["errors"]
    assert missing.startswith("ModelError: picture_models:nothing failed: AttributeError")
    assert other.startswith("ModelError: python:picture_models:means (means) gives no answers")
    assert loaded.startswith("RunError: a loaded model stays in this process")
