"""An audit of a served model reaches the host that the configuration names, and no other."""

import json
import sys

import pytest
import yaml

from audits.predictions.models import painted
from network.tracing import missing_tools, trace

pytestmark = pytest.mark.skipif(missing_tools() is not None, reason=str(missing_tools()))

PORT = 8000
NAMED, FORBIDDEN, ELSEWHERE, PROXY = "192.0.2.2", "192.0.2.3", "198.51.100.7", "198.51.100.8"
SERVE = (
    f"ip addr add {NAMED}/32 dev lo; ip addr add {FORBIDDEN}/32 dev lo; "
    f"{sys.executable} -m network.chat >/dev/null 2>&1 & while [ ! -e ready ]; do sleep 0.1; done"
)
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
VARIABLES = dict.fromkeys(PROXIES, f"http://{PROXY}:3128")
PROGRAM = """
import json, sys
import httpx2
from equipoise.cli.app import run

configs, careless = json.loads(sys.argv[1])
careful = httpx2.Client
httpx2.Client = lambda **settings: careful(**settings | careless)
print("codes", [run(["audit", name, "--out", f"run-{name}"]) for name in configs])
"""


def write_configs(folder):
    """Write audits of models here and on a named host, on a moved and on a forbidden one."""
    painted(folder)
    models = {
        "named": {"here": "127.0.0.1", "there": NAMED},
        "moved": {"moved": "127.0.0.1"},
        "forbidden": {"forbidden": FORBIDDEN},
    }
    for config, hosts in models.items():
        values = {
            "audit": "answers",
            "data": {"images": {"table": "images.csv", "id": "id", "root": "pictures",
                                "path": "file"}, "groups": ["group"]},
            "models": {
                name: {"model": f"served:http://{host}:{PORT}/v1#"
                                f"{'moved' if name == 'moved' else 'tiny'}",
                       "question": "Which colour is it?",
                       "service": {"allow_hosts": [NAMED], "attempts": 1, "timeout": 5.0}}
                for name, host in hosts.items()
            },
            "resampling": {"replicates": 20, "permutations": 20},
        }  # fmt: skip
        (folder / f"{config}.yaml").write_text(yaml.safe_dump(values))


def leaks_of(folder, *configs, **careless):
    """Return the output of audits, and the lines of strace that leave this machine."""
    write_configs(folder)
    request = json.dumps([[f"{name}.yaml" for name in configs], careless])
    return trace(folder, "-c", PROGRAM, request, before=SERVE, **VARIABLES)


def test_only_the_named_host_is_reached(tmp_path):
    done, leaks = leaks_of(tmp_path, "named", "moved", "forbidden")
    assert "codes [0, 2, 2]" in done.stdout, done.stderr
    assert leaks
    assert [leak for leak in leaks if NAMED not in leak.text] == []


@pytest.mark.parametrize(
    ("config", "careless", "host"),
    [("named", {"trust_env": True}, PROXY), ("moved", {"follow_redirects": True}, ELSEWHERE)],
)
def test_a_proxy_or_redirect_that_is_followed_is_caught(tmp_path, config, careless, host):
    assert any(host in leak.text for leak in leaks_of(tmp_path, config, **careless)[1])
