"""Models that answer in words through `load_model`: the words are the library's own."""

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from equipoise.core import MissingExtraError, ModelError
from equipoise.models import load_model
from model_checkpoints import images

QUESTION = "what is this ?"
NEAR_SQUARES = [image for image in images() if max(image.shape[:2]) / min(image.shape[:2]) < 4]
IMAGES = [*NEAR_SQUARES, *(np.full((40, 60, 3), level, np.uint8) for level in (0, 90, 255))]
GREEDY = {"do_sample": False, "max_new_tokens": 32}


@pytest.fixture(scope="module")
def answerer(checkpoint):
    """Return our model, the library's, and its processor."""

    def loaded(family):
        folder = checkpoint(family)
        kind = "BlipForQuestionAnswering" if family == "blip_vqa" else "AutoModelForImageTextToText"
        reference = getattr(transformers, kind).from_pretrained(folder).eval()
        processor = transformers.AutoProcessor.from_pretrained(folder)
        return load_model(f"hf:{folder}", device="cpu"), reference, processor

    return loaded


def reference_answer(reference, processor, start, **inputs):
    with torch.inference_mode():
        tokens = reference.generate(**inputs, **GREEDY)
    return processor.decode(tokens[0, start:], skip_special_tokens=True).strip()


PROMPTS = {
    "blip_2": ("Question: what is this ? Answer:", "Question: {} Answer:"),
    "blip_vqa": (QUESTION, "{}"),
    "blip_caption": (None, ""),
    "llava": (f"user : <image> {QUESTION} assistant :", "assistant :"),
    "qwen2_vl": (f"user : <|vision_start|><|image_pad|><|vision_end|>{QUESTION} assistant :", ""),
}


@pytest.mark.parametrize("family", PROMPTS)
def test_answers_are_the_librarys_own(family, answerer):
    model, reference, processor = answerer(family)
    text, prompt = PROMPTS[family]
    pictures = [image for image in images() if family != "qwen2_vl" or max(image.shape[:2]) < 80]
    expected = []
    for image in pictures:
        words = {} if text is None else {"text": [text]}
        inputs = processor(images=Image.fromarray(image), **words, return_tensors="pt")
        start = 0 if family in ("blip_vqa", "blip_caption") else inputs.input_ids.shape[1]
        expected.append(reference_answer(reference, processor, start, **inputs))
    question = "" if text is None else QUESTION
    assert model.answer(pictures, question) == expected
    assert len(set(expected)) > 1
    assert prompt in model.info.preprocessing["prompt"]
    assert model.info.preprocessing["decoding"]["do_sample"] is False
    model.batches.size = 1
    assert model.answer(pictures, question) == expected
    if family != "blip_2":
        with pytest.raises(ModelError, match="answers questions|only captions"):
            model.answer(pictures, " " if question else QUESTION)


def test_blip_2_captions_where_there_is_no_question(answerer):
    model, reference, processor = answerer("blip_2")
    inputs = processor(Image.fromarray(images()[0]), return_tensors="pt")
    # Its own start, without a text: the image's tokens and the one that begins a text.
    expected = reference_answer(reference, processor, 4 + 1, **inputs)
    assert model.answer(images()[:1], "") == [expected]


def test_vilt_answers_with_its_likeliest_class(checkpoint):
    folder = checkpoint("vilt_vqa")
    reference = transformers.ViltForQuestionAnswering.from_pretrained(folder).eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    expected = []
    for image in IMAGES:
        inputs = processor(Image.fromarray(image), QUESTION, return_tensors="pt")
        with torch.inference_mode():
            best = reference(**inputs).logits[0].argmax().item()
        expected.append(reference.config.id2label[best])
    model = load_model(f"hf:{folder}", device="cpu")
    assert model.answer(IMAGES, QUESTION) == expected
    assert len(set(expected)) > 1
    with pytest.raises(ModelError, match="answers questions"):
        model.answer(IMAGES, "")


def test_a_chat_model_without_a_template(checkpoint, tmp_path):
    source = checkpoint("llava")
    for path in source.iterdir():
        if path.name != "chat_template.jinja":
            (tmp_path / path.name).symlink_to(path)
    with pytest.raises(ModelError, match="has no chat template"):
        load_model(f"hf:{tmp_path}", device="cpu")


def test_a_chat_model_that_needs_torchvision_says_so(checkpoint, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise ImportError("Qwen2VLVideoProcessor requires the Torchvision library but it was not")

    monkeypatch.setattr(transformers.AutoProcessor, "from_pretrained", refuse)
    message = r"^torchvision is not installed\. .*'\.\[chat\]'"
    with pytest.raises(MissingExtraError, match=message):
        load_model(f"hf:{checkpoint('llava')}", device="cpu")


@pytest.mark.parametrize("family", PROMPTS)
def test_log_probabilities_are_those_of_the_librarys_logits(family, answerer):
    model, reference, processor = answerer(family)
    image, (text, _) = images()[0], PROMPTS[family]
    words = {} if text is None else {"text": [text]}
    inputs = processor(images=Image.fromarray(image), **words, return_tensors="pt")
    with torch.inference_mode():
        drawn = reference.generate(
            **inputs, **GREEDY, output_logits=True, return_dict_in_generate=True
        )
    question = "" if text is None else QUESTION
    (answer,) = model.answer_with_probabilities([image], question)
    assert [answer.text] == model.answer([image], question)
    assert len(answer.log_probabilities) == min(8, len(drawn.logits))
    for logits, place in zip(drawn.logits, answer.log_probabilities, strict=False):
        expected = logits[0].log_softmax(dim=-1)
        best = processor.decode(expected.argmax())
        assert max(place, key=place.get) == best
        assert place[best] == pytest.approx(expected.max().item(), abs=1e-4)


def test_answers_that_are_classes_have_no_log_probabilities(checkpoint):
    model = load_model(f"hf:{checkpoint('vilt_vqa')}", device="cpu")
    (answer,) = model.answer_with_probabilities(IMAGES[:1], QUESTION)
    assert answer == (model.answer(IMAGES[:1], QUESTION)[0], None)
