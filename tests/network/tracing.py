"""Commands under strace, on a network that leads nowhere, in an empty home folder."""

import json
import os
import re
import shutil
import subprocess
import sys
from bisect import bisect
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

import equipoise
from equipoise.telemetry import SWITCHES

TOOLS = ("strace", "unshare", "ip")
PATHS = (Path(equipoise.__file__).parents[1], Path(__file__).parents[1], Path(__file__).parents[2])
CACHE = Path(".cache", "equipoise")
HOLD = 20
"""Seconds that a process lives on after models ran: reports are collected, and sent later."""

# An address that is not loopback's makes resolvers believe in a network. All packets end here, and
# all processes end with the traced one.
ADDRESS = "192.0.2.1"
NOWHERE = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec")
SETUP = f"ip link set lo up; ip addr add {ADDRESS}/32 dev lo; ip route add default dev lo; "
STRACE = (
    "strace",
    "-f",
    "-qq",
    "-ttt",
    "--seccomp-bpf",
    "-e",
    "trace=%network",
    "-e",
    "signal=none",
)

PROGRAM = """
import json, os, signal, sys, threading, time, urllib.request
from http.cookiejar import CookieJar

cases, hold, switches = json.loads(sys.argv[1])
from equipoise.cli.app import run
for name in switches:
    del os.environ[name]
RUNTIMES = {"cv2", "onnxruntime", "openvino", "ray", "torch"}


class Reader:
    # Opens the page of `equipoise review` and ends the command.
    def write(self, text):
        sys.__stdout__.write(text)
        if "http://" in text:
            threading.Thread(target=self.visit, args=(text.split()[-1],)).start()

    def __getattr__(self, name):
        return getattr(sys.__stdout__, name)

    def visit(self, address):
        visitor = urllib.request.HTTPCookieProcessor(CookieJar())
        no_proxy = urllib.request.ProxyHandler({})
        browser = urllib.request.build_opener(visitor, no_proxy)
        for _ in range(100):
            try:
                browser.open(address).close()
                break
            except OSError:  # it is not served yet
                time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)


codes, starts = [], []
for folder, commands in cases:
    starts.append(time.time())
    os.chdir(folder)
    codes.append([])
    for words in commands:
        sys.stdout = Reader() if words[0] == "review" else sys.__stdout__
        codes[-1].append(run(words))
sys.stdout = sys.__stdout__
if not RUNTIMES.isdisjoint(sys.modules):
    time.sleep(hold)
print("done", json.dumps([codes, starts]))
"""


class Leak(NamedTuple):
    """A line of strace or a file in the home folder, and when it was written."""

    seconds: float
    text: str


def missing_tools():
    """Return why commands can't be traced here; None where they can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "traces system calls in a network of its own, which takes root on Linux"
    absent = [name for name in TOOLS if shutil.which(name) is None]
    return f"traces system calls, and lacks {', '.join(absent)}" if absent else None


def environment(home):
    """Return the variables of a person at a terminal; none says that this is a test."""
    home.mkdir()
    folders = {"CACHE": ".cache", "CONFIG": ".config", "DATA": ".local/share",
               "STATE": ".local/state"}  # fmt: skip
    return {
        "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "USER": "ann", "LOGNAME": "ann",
        "HOME": str(home), "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(map(str, PATHS)),
        **{f"XDG_{name}_HOME": str(home / path) for name, path in folders.items()},
    }  # fmt: skip


def trace(folder, *arguments, before="", **more):
    """Run Python in a folder of its own; return its output, and all that left the process.

    Parameters
    ----------
    folder : Path
        Also gets the trace, and the home folder.
    *arguments : str
        Of Python.
    before : str
        Shell commands that run first, untraced.
    **more : str
        Further variables.
    """
    done = subprocess.run(
        [*NOWHERE, f'{SETUP}{before}\n"$@"', "sh", *STRACE, "-o", folder / "trace.txt",
         sys.executable, *arguments],
        cwd=folder, env=environment(folder / "home") | more, capture_output=True, text=True,
        check=False, timeout=600,
    )  # fmt: skip
    lines = (folder / "trace.txt").read_text(errors="replace").splitlines()
    return done, [*sent(lines), *left(folder / "home")]


def trace_commands(folder, cases, *, switched_off=True, **more):
    """Run cases after one another in one process; return the leaks of each.

    A leak belongs to the case that runs when it happens.

    Parameters
    ----------
    folder : Path
        As of `trace`.
    cases : mapping of Path to list of list of str
        Commands by the folder that they run in.
    switched_off : bool
        Whether the reports of libraries stay switched off.
    **more
        As of `trace`.
    """
    switches = [] if switched_off else [*SWITCHES]
    request = json.dumps([[(str(at), words) for at, words in cases.items()], HOLD, switches])
    done, leaks = trace(folder, "-c", PROGRAM, request, **more)
    last = (done.stdout.strip().splitlines() or [""])[-1]
    assert last.startswith("done "), f"{done.stdout}\n{done.stderr}"
    codes, starts = json.loads(last.removeprefix("done "))
    assert codes == [
        [130 if words[0] == "review" else 0 for words in commands] for commands in cases.values()
    ], done.stderr
    leaks_of = {at: list[str]() for at in cases}
    for leak in leaks:
        # What happens before the first case is the first one's.
        leaks_of[[*cases][max(0, bisect(starts, leak.seconds) - 1)]].append(leak.text)
    return leaks_of


_CALL = re.compile(r"^\d+ +(?P<seconds>[\d.]+) (?:<\.\.\. )?(connect|sendto|sendmsg|sendmmsg)\b")
_FAMILY = re.compile(r"sa_family=(\w+)")
_PORT = re.compile(r"sin6?_port=htons\((\d+)\)")
_ADDRESS = re.compile(r'inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"')
_RESOLVERS = re.compile(r'sun_path=@?"[^"]*(nscd|resolve|dbus|avahi)')
NAME_SERVICES = {53, 853, 5353, 5355}


def sent(lines):
    """Yield the lines of strace that reach past this machine, or ask a resolver."""
    for line in lines:
        call = _CALL.match(line)
        if not call:
            continue
        addresses = [ip_address(first or other) for first, other in _ADDRESS.findall(line)]
        families = {*_FAMILY.findall(line)} - {"AF_INET", "AF_INET6"}
        if (
            not all(map(stays, addresses))
            or not NAME_SERVICES.isdisjoint(map(int, _PORT.findall(line)))
            or _RESOLVERS.search(line)
            or families - {"AF_UNIX", "AF_NETLINK", "AF_UNSPEC"}
        ):
            yield Leak(float(call["seconds"]), line)


def stays(address):
    """Return whether packets to an address stay on this machine."""
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified or str(address) == ADDRESS


def left(home):
    """Yield the files in a home folder outside of equipoise's own cache."""
    for path in sorted(home.rglob("*")):
        inside = path.relative_to(home)
        if not path.is_dir() and not inside.is_relative_to(CACHE):
            yield Leak(path.stat().st_mtime, str(inside))
