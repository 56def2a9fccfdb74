"""Write the logs of Inspect in tests/data, with its mock model, where inspect_ai is installed.

python tests/inspect_log.py tests/data
"""

import sys
import tempfile
from pathlib import Path

import tiktoken
from inspect_ai import Task, eval  # noqa: A004 - its name there
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice

REFUSED, FAILED, UNCLEAR = 4, 5, 3


class Words:
    """Counts words in place of tokens, whose table is read from the network."""

    def encode(self, text, **_):
        return text.split()


def answers(n):
    for place in range(n):
        if place == FAILED:
            yield RuntimeError("the server didn't answer")
        elif place == REFUSED:
            yield ModelOutput.from_content("mock", "", stop_reason="content_filter")
        else:
            text = "I can't tell." if place == UNCLEAR else f"ANSWER: {'AB'[place % 2]}"
            yield ModelOutput.from_content("mock", text)


def write(folder):
    tiktoken.get_encoding = lambda _: Words()
    samples = [
        Sample(
            id=f"s{n}", input="Which occupation is in the picture? " + "Look closely. " * 9,
            choices=["nurse", "chef"], target="AB"[n == 1],
            metadata={"gender": "women" if n < 3 else "men"},
        )
        for n in range(6)
    ]  # fmt: skip
    outputs = answers(2 * len(samples))

    def answer(*_):
        output = next(outputs)
        if isinstance(output, Exception):
            raise output
        return output

    model = get_model("mockllm/model", custom_outputs=answer)
    task = Task(MemoryDataset(samples, name="jobs"), solver=multiple_choice(), scorer=choice(),
                name="jobs")  # fmt: skip
    with tempfile.TemporaryDirectory() as logs:
        (log,) = eval(
            task, model=model, epochs=2, max_samples=1, max_connections=1, fail_on_error=False,
            log_dir=logs, display="none",
        )  # fmt: skip
        log = read_eval_log(log.location)
    for sample in log.samples:
        sample.events = []
        if sample.error:
            sample.error.traceback = sample.error.traceback_ansi = ""
    for suffix in ("eval", "json"):
        write_eval_log(log, folder / f"inspect_log.{suffix}", format=suffix)


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve())
