"""MobileNetV2 (Sandler et al. 2018), width 1.0, for 224x224 RGB."""

from __future__ import annotations

import torch
from torch import nn

STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""(expansion, channels, repeats, first stride), table 2 of the paper."""


def conv_bn6(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs), nn.ReLU6()]


class InvertedResidual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        expand = conv_bn6(inputs, hidden, 1) if expansion != 1 else []
        project = [nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.body = nn.Sequential(*expand, *conv_bn6(hidden, hidden, 3, stride, groups=hidden), *project)
        self.skip = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.skip else self.body(x)


def mobilenet_v2(classes: int = 1000) -> nn.Module:
    layers: list[nn.Module] = conv_bn6(3, 32, 3, 2)
    channels = 32
    for expansion, width, repeats, stride in STAGES:
        for i in range(repeats):
            layers.append(InvertedResidual(channels, width, stride if i == 0 else 1, expansion))
            channels = width
    layers += conv_bn6(channels, 1280, 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, classes))
