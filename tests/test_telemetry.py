"""Reports of libraries are switched off by `import equipoise`, before any of them is loaded."""

import json

from alone import alone
from equipoise.telemetry import REPORTERS, SWITCHES

PROGRAM = """
import json, os, subprocess, sys
for name in json.loads(sys.argv[1]):
    os.environ.pop(name, None)
import equipoise
child = "import json, os; print(json.dumps(dict(os.environ)))"
print(json.dumps([*sys.modules]))
print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout)
"""


def test_this_process_and_its_children_have_the_switches():
    done = alone(PROGRAM, json.dumps([*SWITCHES]))
    modules, variables = map(json.loads, done.stdout.split("\n", 1))
    assert SWITCHES.items() <= variables.items()
    assert {"onnxruntime", "ray", "huggingface_hub", *REPORTERS}.isdisjoint(modules)


def test_a_switch_that_is_on_is_put_off():
    on = {name: str(1 - int(value)) for name, value in SWITCHES.items()}
    code = "import equipoise, json, os; print(json.dumps(dict(os.environ)))"
    assert SWITCHES.items() <= json.loads(alone(code, **on).stdout).items()


REPORTER = """
import sys
from equipoise.telemetry import without_reporters
sys.modules["openvino_telemetry"] = sys
with without_reporters():
    try:
        import openvino_telemetry
    except ImportError:
        print("absent")
import openvino_telemetry
print(openvino_telemetry is sys)
"""


def test_a_package_that_only_reports_is_absent_for_a_moment():
    assert alone(REPORTER).stdout.split() == ["absent", "True"]
