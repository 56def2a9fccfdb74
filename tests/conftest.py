"""What every test shares: no network, repeatable random examples, skips that are accounted for."""

import gc
import os
import re
import shutil
import signal
import socket
from collections import Counter
from functools import cache
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

# Under EQUIPOISE_STRICT_SKIPS=1 a skip fails the run unless its reason contains one of these.
ALLOWED_SKIPS = {
    "fiftyone isn't installed": "it needs an older starlette than fastapi, which other tests need",
    "needs a CPU with bfloat16": "bfloat16 runs only where the processor reports it",
}

# Files that take longest, in a worker each: dealt out first, since a worker that gets one last
# works on alone.
LONGEST = (
    "network/test_nothing_leaves.py", "planted/test_scenes_training.py", "soak/test_history.py",
    "studies/test_studies.py", "soak/test_injection.py",
    "planted/test_scenes_graphs.py", "evidence/test_extraction_ray.py", "test_end_to_end.py",
    "test_project.py", "counterfactuals/test_control.py", "review/test_example.py",
    "mitigate/test_trained_models.py", "audits/test_example_pages.py", "audits/test_memory.py",
)  # fmt: skip

settings.register_profile("equipoise", derandomize=True, deadline=None)
settings.load_profile("equipoise")

_skipped = {}

# Modules and tests stay to the end of a run: searching them for garbage again and again, while
# there are ever more, takes a third of the time that importing them takes.
gc.disable()


def pytest_collection_finish():
    """Collect garbage of tests from here on, and of tests alone: seldom, as each takes long."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


def pytest_ignore_collect(collection_path, config):
    """Where the slow tests alone are asked for, import no file without one: that takes longer."""
    if config.option.markexpr != "slow" or collection_path.suffix != ".py":
        return None
    return "mark.slow" not in collection_path.read_text(encoding="utf-8") or None


def pytest_collection_modifyitems(config, items):
    """Put the longest files first; under EQUIPOISE_SLOW_SAMPLE=n, keep every nth slow case.

    The first case of a slow test is kept. Tests marked `slow(whole=True)` run without it alone.
    """
    places = {ROOT / "tests" / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    step, cases = int(os.environ.get("EQUIPOISE_SLOW_SAMPLE", "1")), Counter()
    dropped = []
    for item in items:
        test = item.nodeid.partition("[")[0]
        slow = item.get_closest_marker("slow")
        if slow and (cases[test] % step or (step > 1 and slow.kwargs)):
            dropped.append(item)
        cases[test] += 1
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in {*dropped}]


_GROUP = re.compile(r'^pytestmark = .*\bxdist_group\("([^"]+)"\)', re.MULTILINE)


@cache
def group_of(file):
    """Return the group that a file's `pytestmark` puts all its tests in."""
    match = _GROUP.search(file.read_text(encoding="utf-8"))
    return match[1] if match else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Under `--dist loadgroup`, deal out groups whole, the largest first, and others one by one.

    pytest-xdist 3.8 hands groups on inside the ids of tests, which pytest 9.2 no longer lets it
    change: tests of a group are spread over workers, without a word (pytest-xdist issue 1386).
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(config.rootpath / nodeid.partition("::")[0]) or nodeid

    return Groups(config, log)


@pytest.fixture(scope="session")
def shared_dir():
    """Real data and golden values that lie beside the checkout, not in it."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("reads ../shared, which is absent")
    return path


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """Return the folder of a tiny checkpoint of a family, made when it is first asked for."""
    import torch

    from model_checkpoints import FAMILIES

    # Several threads spin longer over models this small than they work.
    torch.set_num_threads(1)
    return cache(lambda family: FAMILIES[family](tmp_path_factory.mktemp(family)))


@pytest.fixture(scope="session")
def tiny_model(checkpoint):
    """Return a tiny model of a family with random weights, on torch."""
    from equipoise.models import load_model

    options = {"device": "cpu", "dtype": "float32", "backend": "torch"}
    return cache(lambda family: load_model(f"hf:{checkpoint(family)}", **options))


@pytest.fixture(scope="session")
def chromium():
    """Path of a Chromium, for the tests that open a report as a reader does."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("drives a browser, and chromium is not installed")
    return path


@pytest.fixture(scope="session")
def browser(chromium):
    """Return one window of Chromium for all tests of a process."""
    from report.browser import started

    driver = shutil.which("chromedriver")
    if driver is None:
        pytest.skip("drives a browser, and chromedriver is not installed")
    with started(chromium, driver) as window:
        yield window


@pytest.fixture(autouse=True)
def _interrupts():
    """Let SIGINT interrupt, also where the shell that began the tests in its background says not.

    Processes that a test starts inherit this.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    """Fail a test that reaches past this machine; what it does in a subprocess is its own to check.

    `pytest.fail` raises no `Exception`, so the code under test cannot swallow it.
    """
    lookup = socket.getaddrinfo

    def guard(name):
        send = getattr(socket.socket, name)

        def guarded(self, *args):
            if self.family != socket.AF_UNIX and not _is_loopback(args[-1][0]):
                pytest.fail(f"a test may not reach the network: socket.{name} to {args[-1]!r}")
            return send(self, *args)

        monkeypatch.setattr(socket.socket, name, guarded)

    def guarded_lookup(host, *args, **kwargs):
        if not _is_loopback(host):
            pytest.fail(f"a test may not reach the network: it looked up {host!r}")
        return lookup(host, *args, **kwargs)

    for name in ("connect", "connect_ex", "sendto"):
        guard(name)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_lookup)


def _is_loopback(host):
    if host in (None, "", b"", "localhost", b"localhost"):
        return True
    try:
        return ip_address(host.decode() if isinstance(host, bytes) else host).is_loopback
    except ValueError:
        return False


def pytest_runtest_logreport(report):
    """Keep each skip of a test; an expected failure is reported as a skip and is none."""
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped[report.nodeid] = _reason(report)


def pytest_collectreport(report):
    """Keep each skip of a whole module."""
    if report.skipped:
        _skipped[report.nodeid] = _reason(report)


def _reason(report):
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


def _unexpected():
    for nodeid, reason in sorted(_skipped.items()):
        if not any(part in reason for part in ALLOWED_SKIPS):
            yield nodeid, reason


def _strict():
    return os.environ.get("EQUIPOISE_STRICT_SKIPS") == "1"


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    """Fail a strict run that passed only because it left something out."""
    if _strict() and session.exitstatus == pytest.ExitCode.OK and any(_unexpected()):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """Say which skips a strict run allowed, and why, and which made it fail."""
    if not _strict():
        return
    unexpected = dict(_unexpected())
    terminalreporter.section("strict skips")
    for nodeid in sorted(_skipped.keys() - unexpected.keys()):
        cause = next(cause for part, cause in ALLOWED_SKIPS.items() if part in _skipped[nodeid])
        terminalreporter.line(f"allowed: {nodeid}: {_skipped[nodeid]} ({cause})")
    for nodeid, reason in unexpected.items():
        terminalreporter.line(f"NOT ALLOWED: {nodeid}: {reason}")
    terminalreporter.line(f"{len(_skipped)} skipped, {len(unexpected)} of them unexpected")
