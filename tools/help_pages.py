"""Help texts of the commands, for the page of the command line."""

import re

import click

from equipoise.cli.app import app

WIDTH = 90


def help_texts(name: str) -> str:
    """Return the help of a command, and of its subcommands, as blocks of Markdown."""
    root = click.Context(app, info_name="equipoise", terminal_width=WIDTH, **app.context_settings)
    command = app.get_command(root, name)
    if command is None:
        raise ValueError(f"{name}: no such command")
    context = click.Context(command, info_name=name, parent=root, terminal_width=WIDTH)
    blocks = [_block(context)]
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            subcommand = command.commands[part]
            inner = click.Context(subcommand, info_name=part, parent=context, terminal_width=WIDTH)
            blocks.append(_block(inner))
    return "\n\n".join(blocks)


def _block(context: click.Context) -> str:
    return f"```text\n{context.get_help()}\n```"


def with_help(page: str) -> str:
    """Return a page with the help of each command under its heading."""
    return re.sub(
        r"^### (.+)$",
        lambda match: f"{match[0]}\n\n{help_texts(match[1])}",
        page,
        flags=re.MULTILINE,
    )
