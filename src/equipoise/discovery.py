"""Where kinds, adapters, formats, metrics, studies and commands are: in files and in plugins.

A file in the folder of its sort is found by a scan of the folder; a plugin, which is another
installed package, by its entry points. Names cost no import: what a name stands for is imported
when it is used, so that a plugin that can't be imported spoils nothing else.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    from equipoise.core.errors import PluginError

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])
PACKAGE = "equipoise"
_NAMES: defaultdict[str, set[str]] = defaultdict(set)
"""Names that are registered, by group of entry points: some groups have two registries."""


@dataclass(frozen=True)
class Place:
    """Where something is defined.

    Attributes
    ----------
    noun : str
        What it is: "data format".
    name : str
    value : str
        Its module, or "module:object".
    package : str
        The installed package that has it; "" for code that runs without one.
    """

    noun: str
    name: str
    value: str
    package: str = PACKAGE

    def __str__(self) -> str:
        """Return the module, and the package unless it is this one."""
        named = self.package not in ("", PACKAGE)
        return f"{self.value} (package {self.package})" if named else self.value

    @property
    def is_built_in(self) -> bool:
        """Whether it is in this package."""
        return self.package == PACKAGE

    @property
    def root(self) -> str:
        """The outermost package of the module."""
        return self.value.partition(":")[0].partition(".")[0]

    @property
    def version(self) -> str:
        """The package with its version, such as "my-bias 1.0"; the module without a package."""
        from importlib.metadata import version

        return f"{self.package} {version(self.package)}" if self.package else self.value

    def load(self, expected: type[T], part: str = "") -> T:
        """Import the module, or a part of it, and return it.

        Parameters
        ----------
        expected : type
            What it must be.
        part : str
            Such as "config:Config" of a package.

        Raises
        ------
        PluginError
            When it can't be imported, lacks the part, or has another thing there.
        """
        module, _, attribute = f"{self.value}{'.' if part else ''}{part}".partition(":")
        try:
            loaded: object = import_module(module)
            loaded = attrgetter(attribute)(loaded) if attribute else loaded
        except (Exception, SystemExit) as error:
            if not self.package or _is_deliberate(error, built_in=self.is_built_in):
                raise
            problem = f"{self} can't be used ({_first_line(error)})"
            fix = f"update or uninstall {self.package}"
            if self.is_built_in:
                fix = "mend or remove the file"
            raise refused(problem, fix, self) from error
        if not isinstance(loaded, expected):
            problem = f"{self} has a {type(loaded).__name__} in place of a {expected.__name__}"
            raise refused(problem, "correct the name in the entry point", self)
        return loaded


def refused(problem: str, fix: str, *places: Place) -> "PluginError":
    """Return the error that says why something can't be used."""
    from equipoise.core.errors import PluginError

    packages = [place.package for place in places]
    return PluginError(problem, fix, noun=places[0].noun, name=places[0].name, packages=packages)


def _is_deliberate(error: BaseException, *, built_in: bool = True) -> bool:
    """Whether an error names its place, or this package raises it on purpose."""
    from equipoise.core.errors import EquipoiseError, PluginError

    return isinstance(error, EquipoiseError if built_in else PluginError)


def _first_line(error: BaseException) -> str:
    """Return the class of an error and the first line of its message."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or ['no message'])[0]}"


def guarded(
    function: Function, place: Place, fix: str, check: Callable[..., str] | None = None
) -> Function:
    """Make errors of another package's function name its place.

    A function of this package is returned unchanged.

    Parameters
    ----------
    function : callable
    place : Place
        Where it is defined.
    fix : str
        What the user can do about an error.
    check : callable, optional
        Returns the problem with a returned value, "" without any.

    Raises
    ------
    PluginError
        By the returned function, when it fails or returns a value that fails the check. An
        `EquipoiseError`, and errors of the memory and of files, stay as they are.
    """
    if place.is_built_in:
        return function

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            value = function(*arguments, **options)
        except Exception as error:
            if isinstance(error, MemoryError | OSError) or _is_deliberate(error):
                raise
            raise refused(f"{place} failed ({_first_line(error)})", fix, place) from error
        problem = "" if check is None else check(value)
        if problem:
            raise refused(f"{place} {problem}", fix, place)
        return value

    return cast("Function", call)


def _taken(*places: Place) -> "PluginError":
    """Return the error about several places of one name."""
    packages = [place.package for place in places if place.package not in ("", PACKAGE)]
    fix = f"rename one{f', or uninstall {packages[0]}' if packages else ''}"
    return refused(f"defined in {' and in '.join(map(str, places))}", fix, *places)


def package_behind(error: BaseException) -> str:
    """Return the plugin package that an error passed through last, "" without any."""
    from traceback import walk_tb

    path = tuple(sys.path)
    packages = {
        place.root: place.package
        for group in _entry_points(path).groups
        if group.startswith(f"{PACKAGE}.")
        for places in _plugins("", group, path).values()
        for place in places
        if place.package
    }
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    roots = (str(frame.f_globals.get("__name__")).partition(".")[0] for frame in reversed(frames))
    return next((packages[root] for root in roots if root in packages), "")


class Places(Mapping[str, Place]):
    """Places of one sort by name: files of a folder, then plugins, then running code.

    Parameters
    ----------
    noun : str
        What one is called: "data format".
    group : str
        Entry points that name others.
    folder : Path
        The folder of the package that is scanned.
    pattern : str
        Files in it. A file in a folder of its own has the folder's name, others their own.
    value : str
        The value of the place of a file, with "{name}", and "{folder}" for the folder's path.
    """

    def __init__(self, noun: str, group: str, folder: Path, pattern: str, value: str) -> None:
        self.noun, self.group, self.folder = noun, group, folder
        self._files: dict[str, Place] = {}
        for path in sorted(folder.glob(pattern)):
            *folders, file = path.relative_to(folder).with_suffix("").parts
            name = folders[-1] if folders else file
            if not name.startswith("_"):
                module = value.format(name=name, folder=".".join(folders))
                self._files[name] = Place(noun, name, module)
        self._files = dict(sorted(self._files.items()))
        self._added: dict[str, Place] = {}

    @property
    def plugins(self) -> Mapping[str, list[Place]]:
        """Places in plugins, by name."""
        return _plugins(self.noun, self.group, tuple(sys.path))

    def __iter__(self) -> Iterator[str]:
        """Yield all names: files, plugins, running code."""
        return iter(dict.fromkeys([*self._files, *self.plugins, *self._added]))

    def __len__(self) -> int:
        """Return the number of names."""
        return sum(1 for _ in self)

    def __getitem__(self, name: str) -> Place:
        """Return a place.

        Raises
        ------
        PluginError
            When two have the name.
        """
        places = [self._files[name]] if name in self._files else []
        places += self.plugins.get(name, ())
        added = self._added.get(name)
        if added is not None and added.value not in {place.value for place in places}:
            places.append(added)
        if not places:
            raise KeyError(name)
        if len(places) > 1:
            raise _taken(*places)
        return places[0]

    def add(self, name: str, module: str) -> None:
        """Add a place in code that runs.

        Raises
        ------
        PluginError
            When another has the name.
        """
        place = Place(self.noun, name, module, "")
        if self._added.get(name, place) != place:
            raise _taken(self._added[name], place)
        self._added[name] = place
        try:
            self[name]
        except ValueError:
            self.remove(name)
            raise

    def remove(self, name: str) -> None:
        """Forget an added place."""
        del self._added[name]


KINDS = Places(
    "kind of audit",
    "equipoise.kinds",
    Path(__file__).with_name("audits"),
    "**/audit.py",
    "equipoise.audits.{folder}",
)
"""Package of each kind by name, with its `config`, `audit` and `page`, imported on first use."""


TRACKERS = Places(
    "experiment tracker",
    "equipoise.trackers",
    Path(__file__).parent / "integrations" / "trackers",
    "*.py",
    "equipoise.integrations.trackers.{name}:TRACKER",
)
"""The `equipoise.report.tracking.Tracker` of each name: of files of the folder, and of plugins."""


class Registry(Mapping[str, T], Generic[T]):
    """Items that modules register by name when they are imported.

    A lookup that misses imports the package's modules, then the plugin of this name. Iteration
    imports all of them; what fails is in `broken`.

    Parameters
    ----------
    noun : str
        What one is called: "data format".
    group : str
        Entry points of the plugins, each called as what it registers.
    package : str
        Package whose files register.
    folder : Path
        Its folder.
    """

    def __init__(self, noun: str, group: str, package: str, folder: Path) -> None:
        self.noun, self.group, self.package, self.folder = noun, group, package, folder
        self._registered: dict[str, T] = {}
        self._places: dict[str, Place] = {}
        self._qualnames: dict[str, str] = {}
        self._loaded: dict[Place, ValueError | None] = {}
        self._complete = False

    @property
    def places(self) -> Mapping[str, Place]:
        """Where registered names are defined."""
        return self._places

    @property
    def modules(self) -> frozenset[str]:
        """Modules that registered something."""
        return frozenset(place.value for place in self._places.values())

    @property
    def broken(self) -> Mapping[str, ValueError]:
        """Errors of plugins and files that can't be imported, by name."""
        self._load_all()
        plugins = {place for places in self._plugins.values() for place in places}
        errors = {
            place.name: error
            for place, error in self._loaded.items()
            if error is not None and place in plugins
        }
        return errors | {**self._broken_files}

    @property
    def left_out(self) -> str:
        """Broken plugins and files, for errors about an unknown name; "" without any."""
        plugins = [
            f"{name} of {' and '.join(getattr(error, 'packages', ()))}"
            for name, error in self.broken.items()
        ]
        return f"; left out, as they can't be imported: {', '.join(plugins)}" if plugins else ""

    def add(self, name: str, item: T, module: str, qualname: str = "") -> None:
        """Register something that a module defines.

        Parameters
        ----------
        name : str
        item : object
        module : str
        qualname : str
            The qualified name of its function. A second definition of this name in the same module
            replaces the first, so that a cell of a notebook can run again.

        Raises
        ------
        PluginError
            When the name is taken.
        """
        if self.is_redefined(name, module, qualname):
            self.remove(name)
        self.check_free(name, module)
        self._registered[name] = item
        self._places[name] = self.place(name, module)
        self._qualnames[name] = qualname
        _NAMES[self.group].add(name)

    def is_redefined(self, name: str, module: str, qualname: str) -> bool:
        """Whether a module defines the registered function of a name again."""
        place = self._places.get(name)
        is_same_module = place is not None and place.value == module
        return is_same_module and bool(qualname) and self._qualnames[name] == qualname

    def has(self, name: str) -> bool:
        """Whether something is registered already; nothing is imported."""
        return name in self._registered

    def check_free(self, name: str, module: str) -> None:
        """Refuse a name that is registered.

        Raises
        ------
        PluginError
            With the modules of both.
        """
        if name in self._registered:
            raise _taken(self._places[name], self.place(name, module))

    def remove(self, name: str) -> None:
        """Forget a name, to define it again."""
        del self._registered[name]
        del self._places[name]
        del self._qualnames[name]
        _NAMES[self.group].discard(name)

    def find(self, name: str) -> T:
        """Return the item that a user names, with its plugin checked.

        Raises
        ------
        KeyError
            When there is none.
        PluginError
            When a plugin or a file of this name can't be imported, or its name is taken.
        """
        self._load_files()
        self._load_plugin(name)
        if name not in self._registered and name in self._broken_files:
            raise self._broken_files[name]
        return self._registered[name]

    def __getitem__(self, name: str) -> T:
        """Return the registered item, or that of the plugin of this name."""
        if name not in self._registered:
            return self.find(name)
        return self._registered[name]

    def __iter__(self) -> Iterator[str]:
        """Yield all names, in the order in which they were registered."""
        self._load_all()
        return iter([*self._registered])

    def __len__(self) -> int:
        """Return the number of names."""
        return sum(1 for _ in self)

    def place(self, name: str, module: str) -> Place:
        """Return the place of a name that a module registers."""
        root = module.partition(".")[0]
        if root == PACKAGE:
            return Place(self.noun, name, module)
        plugins = (place for places in self._plugins.values() for place in places)
        packages = (place.package for place in plugins if place.root == root)
        return Place(self.noun, name, module, next(packages, ""))

    @property
    def _plugins(self) -> Mapping[str, list[Place]]:
        return _plugins(self.noun, self.group, tuple(sys.path))

    @property
    def _broken_files(self) -> Mapping[str, ValueError]:
        errors = ((place, error) for place, error in self._loaded.items() if place.is_built_in)
        return {place.name: error for place, error in errors if error is not None}

    def _load_files(self) -> None:
        """Import the modules of the package, once."""
        if self._complete:
            return
        self._complete = True
        for path in sorted(self.folder.rglob("*.py")):
            if path.name != "__init__.py":
                parts = path.relative_to(self.folder).with_suffix("").parts
                place = Place(self.noun, path.stem, ".".join((self.package, *parts)))
                try:
                    place.load(ModuleType)
                except ValueError as error:
                    self._loaded[place] = error

    def _load_all(self) -> None:
        self._load_files()
        for name in self._plugins:
            try:
                self._load_plugin(name)
            except ValueError:
                continue

    def _load_plugin(self, name: str) -> None:
        """Import the plugin of a name once, and raise its error each time."""
        from equipoise.core.errors import PluginError

        places = self._plugins.get(name, [])
        for place in places:
            if place not in self._loaded:
                self._loaded[place] = None
                try:
                    if len(places) > 1:
                        raise _taken(*places)
                    place.load(ModuleType)
                    registered = self._places.get(name)
                    if registered is not None and registered.package == PACKAGE:
                        raise _taken(registered, place)
                    if name not in _NAMES[self.group]:
                        problem = f"{place} registers none of this name"
                        raise refused(problem, f"update or uninstall {place.package}", place)
                except PluginError as error:
                    self._loaded[place] = error
            failure = self._loaded[place]
            if failure is not None:
                raise failure


def calling_module() -> str:
    """Return the module that calls the function that calls this."""
    return str(sys._getframe(2).f_globals.get("__name__", "__main__"))


@lru_cache(maxsize=32)
def _plugins(noun: str, group: str, path: tuple[str, ...]) -> Mapping[str, list[Place]]:
    """Return the places that entry points name, by name; `path` is the path of imports."""
    places = dict[str, list[Place]]()
    for point in sorted(_entry_points(path).select(group=group)):
        package = point.dist.name if point.dist is not None else ""
        places.setdefault(point.name, []).append(Place(noun, point.name, point.value, package))
    return places


@lru_cache(maxsize=1)
def _entry_points(path: tuple[str, ...]) -> Any:  # noqa: ARG001 - a key of the cache
    from importlib.metadata import entry_points

    return entry_points()
