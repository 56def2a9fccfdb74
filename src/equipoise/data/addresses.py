"""Tables at addresses: web servers, and object storage through the packages of fsspec."""

import re
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from equipoise.core import DataError
from equipoise.data.files import BLANK, ROWS_EXPECTED, empty_file

_WEB = ("http", "https")
_SECONDS = 60


def read_address(address: str) -> bytes:
    """Return the content at an address.

    Raises
    ------
    DataError
        When it holds a password, its scheme needs a package that isn't installed, or it can't be
        read.
    """
    parts, name = urlsplit(address), shown(address)
    if "@" in parts.netloc and ":" in parts.netloc.rpartition("@")[0]:
        raise DataError(
            "the address holds a password",
            file=name,
            expected="an address without credentials",
            fix="put credentials where the package of the storage looks for them, such as "
            "environment variables",
        )
    content = _read_web(address) if parts.scheme.lower() in _WEB else _read_storage(address)
    if not content.strip(BLANK):
        raise empty_file(name, ROWS_EXPECTED)
    return content


def shown(address: str) -> str:
    """Return an address as reports name it: without credentials and signatures."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def extension_of(address: str) -> str:
    """Return the extension of the file at an address."""
    name = urlsplit(address)
    stem, dot, extension = f"{name.netloc}{name.path}".rpartition(".")
    return f".{extension.lower()}" if stem and dot else ""


def _read_web(address: str) -> bytes:
    try:
        with urlopen(address, timeout=_SECONDS) as response:  # noqa: S310 - the scheme is checked
            content: bytes = response.read()
            return content
    except HTTPError as error:
        error.close()
        raise _unreadable(address, f"the server answers {error.code} {error.reason}") from None
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise _unreadable(address, f"the server can't be reached ({reason})") from None


def _read_storage(address: str) -> bytes:
    scheme = urlsplit(address).scheme
    try:
        import fsspec
        from fsspec.registry import known_implementations
    except ImportError:
        raise _no_package(address, "fsspec") from None
    try:
        with fsspec.open(address, "rb") as file:
            content: bytes = file.read()
            return content
    except ImportError:
        needs = known_implementations.get(scheme, {}).get("err", "")
        named = re.search(r"install (\S+)", needs, re.IGNORECASE)
        raise _no_package(address, named[1].strip("\"'`.,") if named else scheme) from None
    except FileNotFoundError:
        raise _unreadable(address, "the file doesn't exist") from None
    except ValueError as error:
        raise _unreadable(address, f"no package reads {scheme}:// ({error})") from None
    except Exception as error:  # noqa: BLE001 - each package of a storage has errors of its own
        raise _unreadable(address, f"{type(error).__name__}: {error}") from None


def _no_package(address: str, package: str) -> DataError:
    return DataError(
        f"{urlsplit(address).scheme}:// needs the package {package}, which isn't installed",
        file=shown(address),
        expected="an address whose package is installed, or a file",
        fix=f"pip install {package}; or copy the file to this machine",
    )


def _unreadable(address: str, problem: str) -> DataError:
    return DataError(
        problem,
        file=shown(address),
        expected="the address of a table that this machine may read",
        fix="check the address and your access; or copy the file to this machine",
    )
