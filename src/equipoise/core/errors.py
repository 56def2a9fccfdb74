"""The error tree: everything equipoise raises on purpose, said in the user's words."""

import re
from collections.abc import Sequence

# The end of a sentence that was given one already; "..", "../x" and "1, 2, ..." are none.
_DOUBLED = re.compile(r"(?<=[^\s./])([.?])\.(?=\s|$)")


class EquipoiseError(Exception):
    """Base of every error that equipoise raises on purpose.

    The command line prints its message and exits with 2; no traceback reaches a user. A message
    may end in what another library said, with or without a full stop: it has one in the end.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(_DOUBLED.sub(r"\1", a) if isinstance(a, str) else a for a in args))


class InputError(EquipoiseError, ValueError):
    """Arrays or arguments given to a function are not of the documented form."""


class PluginError(InputError):
    """Something that another package adds, or a file, can't be used.

    Parameters
    ----------
    problem : str
        What is wrong.
    fix : str
        What the user can do about it.
    noun, name : str
        What it is, such as "data format", and its name.
    packages : sequence of str
        The packages that add it; "" stands for code that runs without one.
    """

    def __init__(
        self, problem: str, fix: str, *, noun: str, name: str, packages: Sequence[str]
    ) -> None:
        self.noun, self.name, self.packages = noun, name, tuple(packages)
        super().__init__(f"{noun} {name!r}: {problem}. To do: {fix}.")


class ConfigError(EquipoiseError):
    """The configuration names something unknown or contradicts itself.

    Parameters
    ----------
    *args : object
        The message.
    key : str, optional
        The key that is wrong.
    expected : str, optional
        What to write in its place.
    file, line : optional
        Where it stands; lines count from 1.
    problems : sequence of ConfigError
        Each problem of a message that has several.
    """

    def __init__(
        self,
        *args: object,
        key: str = "",
        expected: str = "",
        file: str | None = None,
        line: int | None = None,
        problems: Sequence["ConfigError"] = (),
    ) -> None:
        self.key, self.expected, self.file, self.line = key, expected, file, line
        self.problems = tuple(problems)
        super().__init__(*args)


class DataError(EquipoiseError):
    """A file or table cannot be used as given.

    Parameters
    ----------
    problem : str
        What was found.
    file, column, row : optional
        Where it was found. Rows count from 1 at the first row of data, without the header.
    expected : str, optional
        What was expected there.
    fix : str, optional
        What the user can do about it.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        column: str | None = None,
        row: int | None = None,
        expected: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.problem, self.file, self.column, self.row = problem, file, column, row
        self.expected, self.fix = expected, fix
        places = (
            file,
            None if column is None else f"column {column!r}",
            None if row is None else f"row {row}",
        )
        where = ", ".join(filter(None, places))
        text = f"{where}: {problem}" if where else problem
        sentences = [f"Expected: {expected}."] if expected else []
        sentences += [f"To do: {fix}."] if fix else []
        super().__init__(". ".join([text.rstrip("."), " ".join(sentences)]).rstrip())


class ModelError(EquipoiseError):
    """A model cannot be loaded or run."""


class MissingExtraError(ModelError):
    """A library that an optional feature needs is not installed.

    Parameters
    ----------
    package : str
        The library that is missing.
    extra : str
        The extra of equipoise that installs it.
    """

    def __init__(self, package: str, extra: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(
            f"{package} is not installed. To do: run pip install '.[{extra}]' in a checkout of "
            "equipoise."
        )


class RunError(EquipoiseError):
    """A run directory cannot be read, or written where it was asked for."""
