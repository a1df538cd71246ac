"""A keyword spotter of the DS-CNN family (Zhang et al. 2017) in the size of MLPerf Tiny: 49 frames of 10 MFCCs, 12 words."""

from __future__ import annotations

from torch import nn

WIDTH = 64


def conv_bn(inputs: int, kernel: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int], groups: int = 1) -> list[nn.Module]:
    conv = nn.Conv2d(inputs, WIDTH, kernel, stride, padding, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(WIDTH), nn.ReLU()]


def ds_cnn(words: int = 12) -> nn.Module:
    layers = conv_bn(1, (10, 4), (2, 2), (4, 1))
    for _ in range(4):
        layers += conv_bn(WIDTH, (3, 3), (1, 1), (1, 1), groups=WIDTH)
        layers += conv_bn(WIDTH, (1, 1), (1, 1), (0, 0))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTH, words), nn.Softmax(dim=1))
