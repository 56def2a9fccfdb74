"""Groups of commands that suggest a name for an unknown one."""

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
