"""The command `review`."""

from pathlib import Path

import click

from equipoise.cli.terminal import PATH, json_option, say, say_json


@click.command("review", epilog="Example: equipoise review runs/first")
@click.argument("run", type=PATH)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port [default: any]."
)
@click.option(
    "--images",
    type=PATH,
    metavar="FOLDER",
    help="Folder of the images, if they have moved since the audit.",
)
@click.option(
    "--code",
    "codes",
    multiple=True,
    metavar="NAME",
    help="Your own code for the coding form. Repeatable.",
)
@json_option
def review_command(
    run: Path, port: int, images: Path | None, codes: tuple[str, ...], as_json: bool
) -> None:
    """Show the images behind each finding of RUN on a local page.

    Only this machine can open the page, with the printed address. Ctrl-C ends it.
    """
    from equipoise.cli.app import report_failure
    from equipoise.review.server import serve

    for address in serve(run, port=port, folder=images, codes=codes, report=report_failure):
        if as_json:
            say_json({"run": run, "address": address})
        else:
            say(f"review: {address}")
