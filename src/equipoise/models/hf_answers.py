"""Models of transformers that answer in words: BLIP, BLIP-2 and chat models that see."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from equipoise.core.errors import ModelError
from equipoise.models.batching import Batches
from equipoise.models.hf_loading import Source, image_facts, text_facts
from equipoise.models.images import pillow_images
from equipoise.models.info import ModelInfo
from equipoise.models.runtimes import Placement

AT_ONCE = 16

# Always the likeliest word: the same question to the same image has the same answer. Checkpoints
# come with settings of their own for sampling, which are switched off here.
DECODING = {
    "max_new_tokens": 32,
    "do_sample": False,
    "num_beams": 1,
    "temperature": None,
    "top_p": None,
    "top_k": None,
}


@dataclass(frozen=True)
class Family:
    """How a question is put.

    Attributes
    ----------
    name : str
        As it stands in `ModelInfo.family`.
    prompt : str
        What stands around the question, ``{}``; empty of a model that only captions. It is not
        used where `chat` is set.
    captions : bool
        Whether an empty question asks for a caption.
    chat : bool
        Whether the question is put by the chat template that comes with the checkpoint.
    """

    name: str
    prompt: str = ""
    captions: bool = False
    chat: bool = False


FAMILIES = {
    "BlipForQuestionAnswering": Family("blip-vqa", "{}"),
    "BlipForConditionalGeneration": Family("blip-caption", captions=True),
    "Blip2ForConditionalGeneration": Family("blip-2", "Question: {} Answer:", captions=True),
}


@dataclass(frozen=True)
class HfAnswerer:
    """A model of transformers that answers questions about images; made by `load_model`."""

    info: ModelInfo
    model: Any
    processor: Any
    family: Family
    placement: Placement
    batches: Batches

    def answer(self, images: Sequence[Any], question: str) -> list[str]:
        """Return one answer for each image, as the model wrote it.

        Parameters
        ----------
        images : sequence of n images
            See `equipoise.models.images.as_rgb`.
        question : str
            The same for all. Empty asks for a caption, of BLIP and BLIP-2.

        Returns
        -------
        list of n str
            Without the question and without white space around it; at most 32 tokens. A model
            that says nothing gives an empty text.

        Raises
        ------
        ModelError
            If the question is empty and the model needs one, or the model only captions.
        """
        asked = bool(question.strip())
        if not asked and not self.family.captions:
            raise ModelError(f"{self.info.name} answers questions; it was given an empty one.")
        if asked and not self.family.chat and not self.family.prompt:
            raise ModelError(f"{self.info.name} only captions. To do: leave the question empty.")
        parts = self.batches.map(partial(self._answers, question), images)
        return [text for part in parts for text in part]

    def _answers(self, question: str, images: Sequence[Any]) -> list[str]:
        asked = self._conversation if self.family.chat else self._prompted
        inputs = self.placement.put(asked(pillow_images(images), question))
        with self.placement.torch.inference_mode():
            tokens = self.model.generate(**inputs, **DECODING)
        told = self.processor.batch_decode(
            tokens[:, self._given(inputs) :], skip_special_tokens=True
        )
        return [text.strip() for text in told]

    def _given(self, inputs: dict[str, Any]) -> int:
        """How many tokens of the output are not the answer: a decoder repeats the question."""
        config = self.model.config
        if self.family.name in {"blip-vqa", "blip-caption"}:
            return 0
        if config.get_text_config().is_encoder_decoder:
            return 0
        if "input_ids" not in inputs:
            # Of a caption, BLIP-2 writes the beginning itself: the image and the first token.
            return int(config.num_query_tokens) + 1
        return int(inputs["input_ids"].shape[1])

    def _prompted(self, images: list[Any], question: str) -> Any:
        if not question.strip():
            return self.processor(images=images, return_tensors="pt")
        text = self.family.prompt.format(question.strip())
        return self.processor(
            images=images, text=[text] * len(images), padding=True, return_tensors="pt"
        )

    def _conversation(self, images: list[Any], question: str) -> Any:
        conversations = [
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "image", "image": image},
                        {"type": "text", "text": question.strip()},
                    ],
                }
            ]
            for image in images
        ]
        return self.processor.apply_chat_template(
            conversations,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"padding": True},
        )


def load_answerer(source: Source) -> HfAnswerer:
    """Load a checkpoint that transformers knows as a model from image and text to text."""
    architecture = source.checkpoint.architecture
    processor = source.part("AutoProcessor")
    family = FAMILIES.get(architecture)
    if family is None:
        family = _chat(source, processor)
    # A decoder goes on where the text ends, so shorter texts are filled up at their beginning.
    processor.tokenizer.padding_side = "left"
    loader = "AutoModelForImageTextToText"
    model = source.model(architecture if architecture in FAMILIES else loader)
    prompt = processor.chat_template if family.chat else family.prompt
    facts = image_facts(processor.image_processor) | text_facts(processor.tokenizer, {})
    return HfAnswerer(
        info=source.info(family.name, facts | {"prompt": prompt, "decoding": DECODING}),
        model=model,
        processor=processor,
        family=family,
        placement=source.placement,
        batches=source.placement.batches(AT_ONCE),
    )


def _chat(source: Source, processor: Any) -> Family:
    if not getattr(processor, "chat_template", None):
        raise ModelError(
            f"{source.checkpoint.asked} has no chat template, so how to ask it is not known. "
            "To do: wrap it in a factory with an answer method (python:module:factory)."
        )
    return Family(str(source.checkpoint.config.get("model_type", "chat")), chat=True)
