"""No command sends anything or leaves anything behind, native libraries included."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import click
import numpy as np
import polars as pl
import pytest
import yaml
from PIL import Image

import data_sets
from equipoise.cli.app import app
from equipoise.planted import scenes
from equipoise.planted.scenes import diffusion
from equipoise.planted.scenes.render import SUBJECTS
from equipoise.review import key_of
from network.tracing import ADDRESS, missing_tools, trace, trace_commands

pytestmark = pytest.mark.skipif(missing_tools() is not None, reason=str(missing_tools()))

CLIP = f"hf:{scenes.WEIGHTS}/clip-biased"
CNN = f"onnx:{scenes.WEIGHTS}/cnn-biased.onnx"
TINY = {"replicates": 20, "permutations": 20}


def save(path, values):
    path.write_text(yaml.safe_dump(values, sort_keys=False))
    return path.name


def draw_photos(folder):
    """Write rendered scenes with a table of their attributes."""
    (folder / "photos").mkdir()
    rendered = scenes.render_sets(1, seed=3)
    table = rendered.table()
    for row, name in enumerate(rendered.image_id):
        Image.fromarray(rendered.images[row]).save(folder / "photos" / f"{name}.png")
    size = {"left": 4, "top": 4, "right": 28, "bottom": 28}
    columns = {name: [*map(str, table[name])] for name in ("subject", "frame", "hue", "set")}
    captions = [
        f"a {hue} {subject}"
        for hue, subject in zip(columns["hue"], columns["subject"], strict=True)
    ]
    ids = [*map(str, rendered.image_id)]
    paths = [f"{name}.png" for name in ids]
    pl.DataFrame(
        {"image_id": ids, "path": paths, "caption": captions, **columns, **size}
    ).write_csv(folder / "images.csv")


def answer_photos(folder):
    """Write answers of two labellers about the photos, who disagree on every other one."""
    ids = pl.read_csv(folder / "images.csv")["image_id"].cast(str).to_list()
    rows = [
        {"key": key_of(name), "question": "right", "labeller": labeller,
         "answer": "no" if labeller == "bo" and place % 2 else "yes",
         "at": "2026-11-28T09:00:00Z"}
        for labeller in ("ann", "bo")
        for place, name in enumerate(ids[:20])
    ]  # fmt: skip
    (folder / "answers.json").write_text(json.dumps(rows))
    return "answers.json"


def pictures(folder, model, **extraction):
    """Write the config of an audit that runs a model over the photos."""
    return save(folder / "pictures.yaml", {
        "audit": "predictions",
        "data": {"images": {"table": "images.csv", "id": "image_id", "root": "photos",
                            "path": "path"}, "target": "subject", "groups": ["frame"]},
        "models": {"ours": model},
        "extraction": {"device": "cpu", **extraction},
        "metrics": {"rates": {}}, "resampling": TINY,
    })  # fmt: skip


def only_tables(folder):
    rng, n = np.random.default_rng(5), 600
    kinds = rng.choice(["cat", "dog", "owl"], n)
    wrong = np.where(rng.random(n) < 0.3, rng.permutation(kinds), kinds)
    pl.DataFrame({
        "id": [f"i{index}" for index in range(n)], "kind": kinds, "ours": wrong,
        "theirs": rng.permutation(wrong), "place": rng.choice(["in", "out"], n),
    }).write_csv(folder / "rows.csv")  # fmt: skip
    models = {name: {"table": "rows.csv", "id": "id", "prediction": name}
              for name in ("ours", "theirs")}  # fmt: skip
    save(folder / "audit.yaml", {
        "audit": "predictions",
        "data": {"table": "rows.csv", "id": "id", "target": "kind", "groups": ["place"]},
        "models": models, "resampling": TINY,
        "gate": [{"metric": "accuracy", "of": "difference", "max": 1.0}],
    })  # fmt: skip
    quick = "quick rows.csv --target kind --pred ours --groups place --out quick"
    yield from (line.split() for line in (
        "new mine.yaml", "metrics", quick, "plan audit.yaml", "audit audit.yaml --out run",
        "report run", "show run", "export run", "compare run --out both", "check run",
        "counterfactuals new sets.yaml", "completion bash",
    ))  # fmt: skip


def shipped_models(folder):
    yield ["demo", "--out", "run"]
    draw_photos(folder)
    yield ["faces", "photos"]


def classifier(folder):
    draw_photos(folder)
    yield ["audit", pictures(folder, {"model": CNN}), "--out", "run"]
    causes = ["causes", "run", "--finding", "true_positive_rate", "--embeddings", CLIP]
    yield [*causes, "--mask", "--medium", CLIP]
    question = ["--question", "right"]
    yield ["label", "sample", "run", *question, "--size", "20", "--images", "photos"]
    yield ["label", "read", "run", answer_photos(folder), *question]
    yield ["label", "settle", "run", *question, "--images", "photos"]
    yield ["label", "show", "run", "agreement", *question]
    yield ["label", "export", "run", "labels.csv"]
    yield ["review", "run"]


def cluster(folder):
    """Workers of a cluster that was started without the switches."""
    draw_photos(folder)
    yield ["audit", pictures(folder, {"model": CNN}, engine="ray"), "--out", "run"]


def openvino(folder):
    draw_photos(folder)
    model = {"model": CLIP, "backend": "openvino", "vocabulary": sorted(SUBJECTS),
             "templates": ["a {}"], "k": 1}  # fmt: skip
    yield ["audit", pictures(folder, model), "--out", "run"]


def components(folder):
    draw_photos(folder)
    images = {
        "table": "images.csv", "root": "photos", "group": "frame", "within": "set", "unit": "set",
        "label": "subject", "caption": "caption", "templates": ["a {}"],
    }  # fmt: skip
    yield ["neurons", save(folder / "neurons.yaml", {
        "model": CLIP, "images": images, "kinds": ["units"], "counts": [1], "random": 1,
        "concepts": {"round": ["a disc"], "cornered": ["a square"]},
        "layers": ["vision_model.encoder.layers.2.mlp.activation_fn"], "replicates": 100,
        "shown": 1, "seeds": 1, "steps": 1, "output": "out", "device": "cpu",
    })]  # fmt: skip


def mitigation(folder):
    draw_photos(folder)
    subjects = pl.read_csv(folder / "images.csv")["subject"].unique().sort().to_list()
    prompts = {"subject": subjects, "prompt": [f"a {subject}" for subject in subjects]}
    pl.DataFrame(prompts).write_csv(folder / "prompts.csv")
    yield ["mitigate", save(folder / "mitigate.yaml", {
        "model": CLIP, "floor": f"hf:{scenes.WEIGHTS}/clip-null",
        "images": {"table": "images.csv", "root": "photos", "attributes": ["hue", "frame"]},
        "prompts": {"table": "prompts.csv"},
        "recipes": {"tuned": {"recipe": "contrastive", "batch": 24}},
        "zero_shot": {"named": {"table": "images.csv", "root": "photos", "label": "subject",
                                "templates": ["a {}"]}},
        "withheld": 0.34, "output": "mitigated", "device": "cpu",
    })]  # fmt: skip


def networks(folder):
    data_sets.domain_net(folder, count=4)
    yield ["train", save(folder / "train.yaml", {
        "images": {"folder": "DomainNet", "levels": ["domain", "class"]}, "label": "class",
        "networks": {"tiny": "timm:test_resnet"},
        "trainings": {"all": {"where": {"domain": ["clipart", "real"]}}},
        "test": {"domain": "sketch"}, "size": 32, "schedule": {"epochs": 1, "batch": 8},
    })]  # fmt: skip
    yield ["augment", "--networks", "cnn", "--images", "40", "--repeats", "1", "--out", "run"]


def generator(folder):
    (folder / "prompts.csv").write_text("prompt_id,prompt\na,a disc\nb,a square\n")
    save(folder / "making.yaml", {
        "prompts": {"table": "prompts.csv", "images": 1},
        "generator": {"model": f"diffusers:{diffusion.WEIGHTS}", "steps": 2, "device": "cpu"},
    })  # fmt: skip
    yield ["counterfactuals", "plan", "making.yaml"]
    yield ["counterfactuals", "generate", "making.yaml"]


def commands_of(group=app, prefix=()):
    """Yield the words of every command."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands_of(command, (*prefix, name))
        else:
            yield (*prefix, name)


# The paths of Ray's sockets must be short; this folder goes with the process. A node that isn't
# up in 30 seconds, as on a busy machine, gives up whatever Ray's settings are: it starts again.
RAY = f"{sys.executable} -m ray.scripts.scripts"
START_RAY = (
    f"mount -t tmpfs ray /mnt; for attempt in 1 2 3; do {RAY} start --head --num-cpus 2 "
    f"--disable-usage-stats --include-dashboard false --node-ip-address {ADDRESS} --port 6379 "
    f"--temp-dir /mnt/ray$attempt >&2 && break; {RAY} stop --force >&2; done"
)


def reporting(folder):
    yield ["demo", "--out", "run"]


# Importing the libraries of models takes longer than most commands: these cases share a process.
MODELS = (
    classifier, openvino, networks, mitigation, components, shipped_models, generator,
)  # fmt: skip
CASES = (*MODELS, cluster, only_tables)
# Processes by their cases, the slowest first.
PROCESSES = {
    MODELS: {},
    (cluster,): {"before": START_RAY, "RAY_ADDRESS": f"{ADDRESS}:6379"},
    (reporting,): {"switched_off": False},
    (only_tables,): {},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {case: tmp_path_factory.mktemp(case.__name__) for case in (*CASES, reporting)}


@pytest.fixture(scope="module")
def commands(folders):
    """Return the commands of each case, whose data is written."""
    return {case: [*case(folder)] for case, folder in folders.items()}


@pytest.fixture(scope="module")
def leaks_of(commands, folders):
    """Return the leaks of a case. Processes run at the same time: most of the time they wait."""

    def run(cases, more):
        words = {folders[case]: commands[case] for case in cases}
        # Workers of a cluster work in the folder that it starts in.
        return trace_commands(folders[cases[0]], words, **more)

    with ThreadPoolExecutor(2) as pool:
        futures = {
            case: process
            for cases, more in PROCESSES.items()
            for process in [pool.submit(run, cases, more)]
            for case in cases
        }
        yield lambda case: futures[case].result()[folders[case]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_nothing_leaves(leaks_of, case):
    leaks = leaks_of(case)
    if case is cluster:
        # Ray looks `localhost` up, and the C library asks its cache on this machine first.
        leaks = [leak for leak in leaks if "nscd" not in leak]
    assert leaks == []


def test_every_command_has_a_case(commands):
    words = [tuple(words) for case in CASES for words in commands[case]]
    names = {*commands_of()}
    assert len(names) > 20
    assert {
        command for command in names if not any(call[: len(command)] == command for call in words)
    } == set()


def test_a_library_that_reports_is_caught(leaks_of):
    """The same command with the switches removed."""
    leaks = leaks_of(reporting)
    assert any("htons(53)" in leak for leak in leaks)
    assert any("onnxruntime" in leak for leak in leaks)


def test_no_cluster_is_started(tmp_path):
    """Ray would ask the cloud's metadata service for its place, whatever its settings."""
    draw_photos(tmp_path)
    audit = ("audit", pictures(tmp_path, {"model": CNN}, engine="ray"))
    done, leaks = trace(tmp_path, "-m", "equipoise", *audit, RAY_TMPDIR=str(tmp_path))
    assert done.returncode == 2
    assert "RAY_ADDRESS" in done.stderr
    assert [leak for leak in leaks if "nscd" not in leak.text] == []


LEAKS = {
    "lookup": "import socket; socket.getaddrinfo('equipoise.invalid', 80)",
    "address": "import socket; socket.create_connection(('203.0.113.1', 80), 0.1)",
    "address of version 6": "import socket; s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM);"
    "s.sendto(b'x', ('2001:db8::1', 80))",
    "native code": "import ctypes; ctypes.CDLL(None).gethostbyname(b'equipoise.invalid')",
    "resolver on this machine": "import socket; s = socket.socket(type=socket.SOCK_DGRAM);"
    "s.sendto(b'x', ('127.0.0.1', 53))",
    "resolver over TLS": "import socket; socket.create_connection(('127.0.0.1', 853))",
    "socket of a resolver": "import socket; socket.socket(socket.AF_UNIX).connect("
    "'/run/systemd/resolve/io.systemd.Resolve')",
    "child": "import subprocess, sys; subprocess.run([sys.executable, '-c',"
    "'import socket; socket.socket(type=socket.SOCK_DGRAM).connect((\"203.0.113.1\", 9))'])",
    "file": "from pathlib import Path; Path.home().joinpath('.config').mkdir();"
    "Path.home().joinpath('.config', 'id').touch()",
}
HARMLESS = """
import socket
from pathlib import Path
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname())
first, second = socket.socketpair()
first.sendall(b"x")
kept = Path.home() / ".cache" / "equipoise"
kept.mkdir(parents=True)
(kept / "kernel").touch()
"""


@pytest.mark.parametrize("program", LEAKS.values(), ids=LEAKS.keys())
def test_a_leak_is_caught(tmp_path, program):
    assert trace(tmp_path, "-c", program)[1] != []


def test_local_traffic_is_no_leak(tmp_path):
    done, leaks = trace(tmp_path, "-c", HARMLESS)
    assert (done.returncode, done.stderr, leaks) == (0, "", [])
