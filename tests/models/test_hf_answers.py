"""Models that answer in words through `load_model`: the words are the library's own."""

import pytest

from equipoise.core.errors import MissingExtraError, ModelError
from equipoise.models import load_model
from model_checkpoints import images

torch = pytest.importorskip("torch", reason="could not import torch")
transformers = pytest.importorskip("transformers", reason="could not import transformers")
Image = pytest.importorskip("PIL.Image", reason="could not import pillow")

QUESTION = "what is this ?"
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


def said(reference, processor, start, **inputs):
    with torch.inference_mode():
        tokens = reference.generate(**inputs, **GREEDY)
    return processor.decode(tokens[0, start:], skip_special_tokens=True).strip()


def test_blip_2_is_asked_in_its_own_words(answerer):
    model, reference, processor = answerer("blip_2")
    expected = []
    for image in images():
        inputs = processor(
            Image.fromarray(image), "Question: what is this ? Answer:", return_tensors="pt"
        )
        expected.append(said(reference, processor, inputs.input_ids.shape[1], **inputs))
    assert model.answer(images(), QUESTION) == expected
    assert len(set(expected)) > 1
    assert model.info.family == "blip-2"
    assert model.info.preprocessing["prompt"] == "Question: {} Answer:"


def test_blip_2_captions_where_there_is_no_question(answerer):
    model, reference, processor = answerer("blip_2")
    inputs = processor(Image.fromarray(images()[0]), return_tensors="pt")
    # Its own start, without a text: the image's tokens and the one that begins a text.
    expected = said(reference, processor, 4 + 1, **inputs)
    assert model.answer(images()[:1], "") == [expected]


def test_blip_answers_questions(answerer):
    model, reference, processor = answerer("blip_vqa")
    expected = [
        said(
            reference,
            processor,
            0,
            **processor(Image.fromarray(image), QUESTION, return_tensors="pt"),
        )
        for image in images()
    ]
    assert model.answer(images(), QUESTION) == expected
    assert len(set(expected)) > 1
    with pytest.raises(ModelError, match="answers questions"):
        model.answer(images(), " ")


def test_blip_captions(answerer):
    model, reference, processor = answerer("blip_caption")
    expected = [
        said(reference, processor, 0, **processor(Image.fromarray(image), return_tensors="pt"))
        for image in images()
    ]
    assert model.answer(images(), "") == expected
    assert len(set(expected)) > 1
    with pytest.raises(ModelError, match="only captions"):
        model.answer(images(), QUESTION)


def test_a_chat_model_is_asked_by_its_template(answerer):
    model, reference, processor = answerer("llava")
    expected = []
    for image in images():
        text = f"user : <image> {QUESTION} assistant :"
        inputs = processor(Image.fromarray(image), text, return_tensors="pt")
        expected.append(said(reference, processor, inputs.input_ids.shape[1], **inputs))
    assert model.answer(images(), QUESTION) == expected
    assert len(set(expected)) > 1
    assert model.info.family == "llava"
    assert "assistant :" in model.info.preprocessing["prompt"]
    assert model.info.preprocessing["decoding"]["do_sample"] is False


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
    said = r"^torchvision is not installed\. To do: pip install 'equipoise\[chat\]'\.$"
    with pytest.raises(MissingExtraError, match=said):
        load_model(f"hf:{checkpoint('llava')}", device="cpu")


def test_a_chat_model_whose_images_have_tokens_by_size(answerer):
    model, reference, processor = answerer("qwen2_vl")
    pictures = [image for image in images() if max(image.shape[:2]) < 80]
    expected = []
    for image in pictures:
        text = f"user : <|vision_start|><|image_pad|><|vision_end|>{QUESTION} assistant :"
        inputs = processor(Image.fromarray(image), [text], return_tensors="pt")
        expected.append(said(reference, processor, inputs.input_ids.shape[1], **inputs))
    assert model.answer(pictures, QUESTION) == expected
    assert len(set(expected)) > 1
    model.batches.size = 1
    assert model.answer(pictures, QUESTION) == expected
