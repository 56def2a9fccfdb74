"""What a model thinks of an image, as a number that can be followed back to its pixels."""

from collections.abc import Callable, Sequence
from typing import Any

from equipoise.core import InputError, ModelError, record
from equipoise.models.edits import Insides, insides
from equipoise.models.hf import HfAnswerer
from equipoise.models.matching import MatchingModel
from equipoise.models.protocols import Answerer, Classifier, DualEncoder, Model, PairScorer
from equipoise.models.towers import TowerEncoder

Tensors = dict[str, Any]
Score = Callable[[Tensors, Sequence[str]], Any]
"""From tensors of n images and n targets to n numbers, each of its own image alone."""

SEEING = ("vision_model", "bridgetower.vision_model", "visual", "image_model")
"""Where the part of a model lies that sees images alone, by name of its layers."""


@record
class Scoring:
    """How much a model finds in an image of what it was asked for.

    Attributes
    ----------
    inside : Insides
        The model's torch module.
    score : callable
        From tensors of n images and their targets to n numbers.
    tower : str
        Name of the part that sees images alone; empty where that is the whole module.
    """

    inside: Insides
    score: Score
    tower: str


def scoring(model: Model, targets: Sequence[str], *, question: str = "") -> Scoring:
    """Say what is followed back to the pixels.

    Parameters
    ----------
    model : Classifier, DualEncoder, PairScorer or Answerer
    targets : sequence of str
        All that will be asked for: labels of a classifier; texts; answers.
    question : str
        Of a model that answers questions; empty for a caption.

    Returns
    -------
    Scoring
        The logit of a label; the cosine of image and text; the logit of a match less that of no
        match; the log-likelihood of the answer.

    Raises
    ------
    InputError
        When a classifier lacks a label, or a question is asked of what answers none.
    ModelError
        When the model's insides cannot be reached, or it computes with fewer than 32 bits.
    """
    inside = insides(model)
    if inside.model is not model and hasattr(model, "model"):
        model = inside.model
    if question and not isinstance(model, Answerer):
        raise InputError(f"{inside.name} answers no questions; leave the question out")
    weight = next(iter(inside.module.parameters()))
    if weight.dtype != inside.torch.float32:
        raise ModelError(f"{inside.name}: maps of activations need float32. To do: dtype: float32.")
    tower = ""
    if isinstance(model, PairScorer) or not isinstance(model, DualEncoder | Classifier):
        # Texts run through the same module.
        layers = dict(inside.module.named_modules())
        tower = next((name for name in SEEING if name in layers), "")
    if isinstance(model, DualEncoder):
        score = _cosine(model, inside, targets)
    elif isinstance(model, MatchingModel):
        score = _match(model)
    elif isinstance(model, HfAnswerer):
        score = _likelihood(model, inside, question)
    elif isinstance(model, Classifier):
        score = _logit(model, inside, targets)
    else:
        raise ModelError(
            f"{inside.name} is of a kind whose opinion cannot be followed back to pixels here. "
            "To do: name a classifier, a dual encoder, or a matching or answering model of BLIP."
        )
    return Scoring(inside, score, tower)


def _logit(model: Classifier, inside: Insides, targets: Sequence[str]) -> Score:
    places = {label: place for place, label in enumerate(model.labels)}
    if unknown := [one for one in dict.fromkeys(targets) if one not in places]:
        raise InputError(f"{inside.name} has no label {unknown[0]!r}")

    def score(inputs: Tensors, asked: Sequence[str]) -> Any:
        output = inside.module(inputs["pixel_values"])
        logits = getattr(output, "logits", output)
        columns = inside.torch.tensor([places[one] for one in asked], device=logits.device)
        return logits.gather(1, columns[:, None])[:, 0]

    return score


def _cosine(model: DualEncoder, inside: Insides, targets: Sequence[str]) -> Score:
    texts = list(dict.fromkeys(targets))
    places = {text: place for place, text in enumerate(texts)}
    vectors = _unit(inside.torch.from_numpy(model.embed_texts(texts)))

    def score(inputs: Tensors, asked: Sequence[str]) -> Any:
        if isinstance(model, TowerEncoder):
            images = _unit(model.tower.call(inside.module, inputs)[0])
        else:
            images = _unit(inside.module(inputs["pixel_values"]))
        wanted = vectors[[places[one] for one in asked]].to(images.device)
        return (images * wanted).sum(dim=1)

    return score


def _unit(vectors: Any) -> Any:
    return vectors / vectors.norm(dim=1, keepdim=True)


def _match(model: MatchingModel) -> Score:
    def score(inputs: Tensors, asked: Sequence[str]) -> Any:
        seen = model.family.seen(model.model, inputs)
        return model.family.match(model.model, seen, model.tokens(asked))

    return score


def _likelihood(model: HfAnswerer, inside: Insides, question: str) -> Score:
    family, question = model.family.name, question.strip()
    if family not in ("blip-vqa", "blip-caption"):
        raise ModelError(
            f"{inside.name} is a {family}, whose answers cannot be followed back to pixels here. "
            "To do: name a blip-vqa or blip-caption model."
        )
    if bool(question) != (family == "blip-vqa"):
        raise InputError(f"{inside.name}: only models of blip-vqa need a question")

    def score(inputs: Tensors, asked: Sequence[str]) -> Any:
        tokens = _answer_tokens(model, asked)
        likely = _logits(model, inputs, tokens, question)[:, :-1].log_softmax(dim=-1)
        each = likely.gather(2, tokens["input_ids"][:, 1:, None])[:, :, 0]
        return (each * tokens["attention_mask"][:, 1:]).sum(dim=1)

    return score


def _answer_tokens(model: HfAnswerer, answers: Sequence[str]) -> Tensors:
    """Answers between the tokens that begin and end one, filled up at their ends."""
    tokenizer, text = model.processor.tokenizer, model.model.config.text_config
    rows = [
        [text.bos_token_id, *tokenizer(one, add_special_tokens=False).input_ids, text.sep_token_id]
        for one in answers
    ]
    padded = tokenizer.pad({"input_ids": rows}, padding_side="right", return_tensors="pt")
    return model.placement.put(padded)


def _logits(model: HfAnswerer, inputs: Tensors, answer: Tensors, question: str) -> Any:
    """Return the logits of each token of the answer to a question, or of a caption without one."""
    states = model.model.vision_model(pixel_values=inputs["pixel_values"]).last_hidden_state
    mask = states.new_ones(states.shape[:2]).long()
    if question:
        text = model.family.prompt.format(question)
        asked = model.processor.tokenizer([text] * len(states), return_tensors="pt")
        own = asked["attention_mask"].to(states.device)
        states = model.model.text_encoder(
            input_ids=asked["input_ids"].to(states.device),
            attention_mask=own,
            encoder_hidden_states=states,
            encoder_attention_mask=mask,
        ).last_hidden_state
        mask = own
    return model.model.text_decoder(
        **answer, encoder_hidden_states=states, encoder_attention_mask=mask
    ).logits
