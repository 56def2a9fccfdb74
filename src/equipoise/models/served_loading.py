"""The prefix ``served:``: models behind an interface, such as vLLM or a hosted one."""

from dataclasses import asdict, replace

from equipoise.models.registry import Options, adapter
from equipoise.models.served import ServedModel
from equipoise.models.served_images import ServedGenerator
from equipoise.models.served_vectors import ServedEncoder
from equipoise.models.service import Address, Service


@adapter(
    "served",
    identify=lambda target, options: {
        "address": asdict(Address.of(target)),
        "service": (options.service or Service()).identity,
    },
)  # fmt: skip
def load(target: str, options: Options) -> ServedModel | ServedEncoder:
    """Return a served model; its server is asked which models it has.

    Raises
    ------
    MissingExtraError
        Without httpx2.
    ModelError
        When the host isn't allowed, the key is missing, or the server has no such model.
    """
    model = ServedModel(Address.of(target), options.service or Service())
    model.check()
    model = replace(model, reported=model.look_up())
    return model if model.service.interface == "chat" else ServedEncoder.of(model)


@adapter("served", makes_images=True)
def load_generator(target: str, options: Options) -> ServedGenerator:
    """Return a served generator; its server is asked which models it has.

    Raises
    ------
    MissingExtraError
        Without httpx2.
    ModelError
        When the host isn't allowed, the key is missing, or the server has no such model.
    """
    server = ServedModel(Address.of(target), options.service or Service())
    server.check()
    return ServedGenerator(replace(server, reported=server.look_up()))
