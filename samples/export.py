"""Exports a sample network with seeded weights: ``python samples/export.py resnet50 -o resnet50.onnx``.

Needs torch (``pip install '.[torch]'`` in the checkout). Both exporters of PyTorch are offered: they spell the same network differently,
and a converter has to read either.
"""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from nets.encoder import Encoder
from nets.keyword import ds_cnn
from nets.mobilenet import mobilenet_v2
from nets.resnet import resnet18, resnet50
from nets.seeded import settle
from nets.tagger import Tagger


@dataclass(frozen=True)
class Sample:
    """A network, the shape of its one input (batch first), and a line about it."""

    build: Callable[[], nn.Module]
    shape: tuple[int, ...]
    about: str


SAMPLES = {
    "resnet18": Sample(resnet18, (1, 3, 224, 224), "image classifier, 11.7 M weights"),
    "resnet50": Sample(resnet50, (1, 3, 224, 224), "image classifier, 25.6 M weights"),
    "mobilenet_v2": Sample(mobilenet_v2, (1, 3, 224, 224), "image classifier, 3.5 M weights"),
    "ds_cnn": Sample(ds_cnn, (1, 1, 49, 10), "keyword spotter, 49 frames of 10 MFCCs"),
    "lstm_tagger": Sample(Tagger, (1, 49, 40), "sequence tagger, two LSTM layers of 128"),
    "encoder_4x256": Sample(lambda: Encoder(4, 256, 4, 128), (1, 128, 256), "transformer encoder, 4 layers of 256, 4 heads"),
    "encoder_6x384": Sample(lambda: Encoder(6, 384, 12, 128), (1, 128, 384), "transformer encoder, 6 layers of 384, 12 heads"),
}


def build(name: str, seed: int = 1) -> tuple[nn.Module, torch.Tensor]:
    """The network in eval mode and an example input, the same on every call."""
    sample = SAMPLES[name]
    torch.manual_seed(seed)
    example = torch.randn(sample.shape, generator=torch.Generator().manual_seed(seed))
    return settle(sample.build(), example), example


def export(name: str, path: Path, *, dynamo: bool = True, dynamic_batch: bool = False, external_data: bool = False) -> None:
    """Writes the ONNX file; ``dynamic_batch`` leaves the first dimension as the symbol ``batch``."""
    model, example = build(name)
    common = {"input_names": ["input"], "output_names": ["output"], "dynamo": dynamo, "verbose": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecation notices of the exporters about themselves
        if dynamo:
            shapes = ({0: torch.export.Dim("batch", max=64)},) if dynamic_batch else None
            torch.onnx.export(model, (example,), str(path), external_data=external_data, dynamic_shapes=shapes, **common)
        else:
            axes = {"input": {0: "batch"}, "output": {0: "batch"}} if dynamic_batch else None
            torch.onnx.export(model, (example,), str(path), opset_version=17, dynamic_axes=axes, **common)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", nargs="?", choices=sorted(SAMPLES))
    parser.add_argument("-o", "--output", type=Path, help="the ONNX file; NAME.onnx when left out")
    parser.add_argument("--exporter", choices=["dynamo", "script"], default="dynamo", help="PyTorch's new or old exporter")
    parser.add_argument("--dynamic-batch", action="store_true", help="leave the batch size as the symbol 'batch'")
    parser.add_argument("--external-data", action="store_true", help="put the weights beside the file (dynamo only)")
    parser.add_argument("--list", action="store_true", help="list the networks")
    args = parser.parse_args()
    if args.list or args.name is None:
        for name, sample in SAMPLES.items():
            print(f"{name:14} {'x'.join(map(str, sample.shape)):14} {sample.about}")
        return 0 if args.list else parser.error("which network?")
    logging.disable(logging.WARNING)
    path = args.output or Path(f"{args.name}.onnx")
    export(args.name, path, dynamo=args.exporter == "dynamo", dynamic_batch=args.dynamic_batch, external_data=args.external_data)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
