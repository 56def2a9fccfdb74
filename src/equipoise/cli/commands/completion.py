"""`equipoise completion`: print the script that completes commands in a shell."""

import os
from pathlib import Path

import click

from equipoise.cli.terminal import json_option, say_json

_VARIABLE = "_EQUIPOISE_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


@click.command("completion", epilog="Example: equipoise completion bash")
@click.argument("shell", type=click.Choice(_SHELLS), metavar="[SHELL]", required=False)
@json_option
@click.pass_context
def completion_command(context: click.Context, shell: str | None, as_json: bool) -> None:
    """Print a script that completes commands with Tab.

    SHELL is the shell that runs, unless you name one. Add a line to its start-up file:

    \b
    bash  eval "$(equipoise completion bash)"     in ~/.bashrc
    zsh   eval "$(equipoise completion zsh)"      in ~/.zshrc
    fish  equipoise completion fish | source      in ~/.config/fish/config.fish
    """  # noqa: D301 - click's mark of lines that stay apart
    from click.shell_completion import ShellComplete, get_completion_class

    shell = shell or _running_shell()
    completion = get_completion_class(shell)
    assert completion is not None  # noqa: S101 - click has these shells
    completer = completion(context.find_root().command, {}, "equipoise", _VARIABLE)
    # Click's own method for bash also starts bash to check its version.
    script = ShellComplete.source(completer)
    if as_json:
        say_json({"shell": shell, "script": script})
    else:
        click.echo(script)


def _running_shell() -> str:
    """Return the name of the user's shell."""
    name = Path(os.environ.get("SHELL", "")).name
    if name not in _SHELLS:
        raise click.BadParameter(
            f"can't tell which shell runs; expected one of {', '.join(_SHELLS)}. "
            "To do: name it, as in: equipoise completion bash",
            param_hint="'SHELL'",
        )
    return name
