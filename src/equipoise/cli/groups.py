"""Commands that explain a mistake: an unknown command, or a list with spaces between."""

from itertools import takewhile
from pathlib import Path

import click

from equipoise.cli.errors import did_you_mean


class SuggestingGroup(click.Group):
    """A group of commands, in the order of their definition."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the commands."""
        return [*self.commands]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that a user names; suggest the most similar one."""
        name, names = args[0], self.list_commands(ctx)
        if not name.startswith("-") and name not in names and not ctx.resilient_parsing:
            near = did_you_mean(name, names)
            listed = f"expected one of {', '.join(names)}"
            raise click.UsageError(f"no command {name!r}{near or f'; {listed}.'}", ctx)
        return super().resolve_command(ctx, args)


class CommandOfLists(click.Command):
    """A command with options that take several names, with commas between.

    Parameters
    ----------
    *args, **kwargs
        As of `click.Command`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a user; explain a list with spaces between its names."""
        words = [*args]
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if type(error) is click.UsageError and (spaced := self._find_spaced(words)):
                option, names = spaced
                raise click.BadParameter(
                    f"given {' '.join(names)!r}. To do: separate with commas: "
                    f"{option} {','.join(names)}",
                    ctx, param_hint=f"'{option}'",
                ) from None  # fmt: skip
            raise

    def _find_spaced(self, words: list[str]) -> tuple[str, list[str]] | None:
        """Return the first option of a list that several names follow, and these."""
        options = {
            option
            for param in self.params
            if isinstance(param, click.Option) and str(param.metavar) in LISTS
            for option in param.opts
        }
        for place, word in enumerate(words):
            if word in options:
                following = takewhile(lambda word: not word.startswith("-"), words[place + 1 :])
                names = [name.strip(",") for name in following if not Path(name).is_file()]
                if len(names) > 1:
                    return word, names
        return None


LISTS = ("COLUMNS", "TEXTS", "NAMES")
"""How options of several names call their value in the help."""
