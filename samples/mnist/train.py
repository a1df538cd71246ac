"""Trains the digit classifier in seconds and exports it: ``python samples/mnist/train.py`` writes digits.onnx beside this file.

Needs torch. One thread and fixed seeds make the training repeatable on one machine.
"""

from __future__ import annotations

import warnings

import torch
from torch import nn

from digits import FOLDER, HELD_OUT, load

EPOCHS, BATCH = 20, 50


def network() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10), nn.Softmax(dim=1),
    )  # fmt: skip


def shifted(images: torch.Tensor) -> torch.Tensor:
    """The batch moved by up to two pixels, which the border has room for."""
    down, right = torch.randint(-2, 3, (2,)).tolist()
    return images.roll((down, right), (2, 3))


def train(model: nn.Sequential, images: torch.Tensor, labels: torch.Tensor) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    logits = model[:-1]
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(logits(shifted(images[batch])), labels[batch]).backward()
            optimizer.step()
        schedule.step()


def main() -> None:
    torch.manual_seed(3)
    torch.set_num_threads(1)
    images, labels = (torch.from_numpy(a) for a in load())
    model = network()
    train(model, images[:-HELD_OUT], labels[:-HELD_OUT])
    model.eval()
    with torch.no_grad():
        right = (model(images[-HELD_OUT:]).argmax(1) == labels[-HELD_OUT:]).sum().item()
    print(f"{right} of {HELD_OUT} held-out digits right")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's notice about its successor, which stores machine paths in the file
        torch.onnx.export(
            model, (images[:1],), str(FOLDER / "digits.onnx"), dynamo=False, opset_version=17,
            input_names=["image"], output_names=["scores"],
        )


if __name__ == "__main__":
    main()
