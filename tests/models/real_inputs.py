"""Real images, text and files prepared for the models, and answers a person would check."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from tests.models.manifest import folder

Outputs = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A model, one or more feeds for it, and what the outputs (one per feed, in order) must say."""

    model: str
    feeds: Callable[[], Iterator[dict[str, np.ndarray]]]
    check: Callable[[list[Outputs]], None]
    shapes: dict[str, tuple[int, ...]] | None = None


def place(*parts: str) -> Path:
    root = folder()
    assert root is not None
    return root.joinpath(*parts)


def image(name: str, width: int, height: int) -> np.ndarray:
    """float32 (height, width, 3), RGB, 0 to 255."""
    with Image.open(place("inputs", name)) as picture:
        small = picture.convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(small, np.float32)


def nchw(pixels: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])


def page() -> Iterator[dict[str, np.ndarray]]:
    with Image.open(place("inputs", "page.png")) as picture:
        line = picture.convert("RGB").crop((0, 42, 384, 66)).resize((768, 48), Image.Resampling.BILINEAR)
    yield {"x": nchw((np.asarray(line, np.float32) / 255 - 0.5) / 0.5)}


def says_the_line(outputs: list[Outputs]) -> None:
    keys = place("labels", "ppocr_keys_v1.txt").read_text(encoding="utf-8").split("\n")[:6623]
    letters = ["", *keys, " "]
    best = outputs[0]["softmax_11.tmp_0"][0].argmax(-1)
    text = "".join(letters[k] for i, k in enumerate(best) if i == 0 or k != best[i - 1])
    assert text.endswith("et us first determine markers of the coins and the")


def faces() -> Iterator[dict[str, np.ndarray]]:
    yield {"input": nchw((image("astronaut.png", 320, 240) - 127) / 128)}


def finds_the_face(outputs: list[Outputs]) -> None:
    scores, boxes = outputs[0]["scores"][0, :, 1], outputs[0]["boxes"][0]
    best = scores.argmax()
    assert scores[best] > 0.995
    np.testing.assert_allclose(boxes[best], (0.35, 0.12, 0.52, 0.34), atol=0.006)


def people() -> Iterator[dict[str, np.ndarray]]:
    yield {"images": nchw(image("astronaut.png", 192, 192)[:, :, ::-1])}


def finds_the_person(outputs: list[Outputs]) -> None:
    rows = outputs[0]["output"][0]
    assert round(float((rows[:, 4] * rows[:, 5]).max()), 2) == 0.88


def flowers() -> Iterator[dict[str, np.ndarray]]:
    yield {"input_1": nchw(image("flower.jpg", 128, 128) / 127.5 - 1)}


def names_the_flower(outputs: list[Outputs]) -> None:
    scores = outputs[0]["dense"][0]
    assert scores.argmax() == 2
    assert round(float(scores[2]), 3) == 0.999


def cups() -> Iterator[dict[str, np.ndarray]]:
    yield {"input.1": nchw(image("coffee.png", 352, 352)[:, :, ::-1] / 255)}


def finds_the_cup(outputs: list[Outputs]) -> None:
    cells = outputs[0]["758"][0].reshape(85, -1)
    best = cells[0].argmax()
    assert cells[5:, best].argmax() == 41
    assert 0.74 < cells[0, best] < 0.79


def digits() -> Iterator[dict[str, np.ndarray]]:
    for row in digit_rows():
        small = Image.fromarray((row[:64].reshape(8, 8) / 16 * 255).astype(np.uint8))
        pixels = np.zeros((1, 1, 28, 28), np.float32)
        pixels[0, 0, 4:24, 4:24] = np.asarray(small.resize((20, 20), Image.Resampling.BICUBIC))
        yield {"Input3": pixels}


def digit_rows() -> np.ndarray:
    with gzip.open(place("inputs", "digits.csv.gz"), "rt") as file:
        return np.loadtxt(file, delimiter=",", max_rows=500)


def reads_the_digits(outputs: list[Outputs]) -> None:
    guessed = [int(o["Plus214_Output_0"].argmax()) for o in outputs]
    assert sum(g == int(row[64]) for g, row in zip(guessed, digit_rows(), strict=True)) == 466


def source() -> Iterator[dict[str, np.ndarray]]:
    config = json.loads(place("labels", "magika_v3_3_config.json").read_text())
    first, last = config["beg_size"], config["end_size"]
    content = Path(__file__).read_bytes()
    head, tail = content[:4096].lstrip()[:first], content[-4096:].rstrip()[-last:]
    tokens = np.full((1, first + last), config["padding_token"], np.int32)
    tokens[0, : len(head)] = list(head)
    tokens[0, first + last - len(tail) :] = list(tail)
    yield {"bytes": tokens}


def calls_it_python(outputs: list[Outputs]) -> None:
    config = json.loads(place("labels", "magika_v3_3_config.json").read_text())
    scores = outputs[0]["target_label"][0]
    assert config["target_labels_space"][int(scores.argmax())] == "python"
    assert scores.max() > 0.95


def speech() -> Iterator[dict[str, np.ndarray]]:
    samples = np.frombuffer(place("inputs", "goforward.raw").read_bytes(), "<i2") / np.float32(32768)
    frames = np.zeros((len(samples) // 512, 576), np.float32)
    padded = np.concatenate([np.zeros(64, np.float32), samples])
    for i, frame in enumerate(frames):
        frame[:] = padded[512 * i : 512 * i + 576]
    state = np.zeros((1, 1, 128), np.float32)
    yield {"input": frames, "h": state, "c": state}


def hears_speech(outputs: list[Outputs]) -> None:
    voiced = outputs[0]["speech_probs"] > 0.5
    assert len(voiced) == 87
    assert voiced.sum() == SPEECH_FRAMES


SPEECH_FRAMES = 54

CASES = {
    "page": Case("ppocr_v4_rec", page, says_the_line, {"x": (1, 3, 48, 768)}),
    "face": Case("ultraface_rfb320", faces, finds_the_face),
    "person": Case("yolox_person_192", people, finds_the_person),
    "flower": Case("st_mobilenet_v2_035", flowers, names_the_flower),
    "cup": Case("fastestdet", cups, finds_the_cup),
    "digits": Case("mnist_cntk", digits, reads_the_digits),
    "source": Case("magika_v3_3", source, calls_it_python),
    "speech": Case("silero_vad_16k_seq", speech, hears_speech, {"input": (87, 576)}),
}
