"""ResNet-18 and ResNet-50 (He et al. 2015, with the stride on the 3x3 convolution of a bottleneck) for 224x224 RGB."""

from __future__ import annotations

import torch
from torch import nn


def conv_bn(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs))


class Residual(nn.Module):
    """relu(body(x) + shortcut(x)); the shortcut is a 1x1 convolution where the shapes differ."""

    def __init__(self, body: nn.Module, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = body
        self.shortcut = nn.Identity() if stride == 1 and inputs == outputs else conv_bn(inputs, outputs, 1, stride)
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.body(x) + self.shortcut(x))


def basic(inputs: int, width: int, stride: int) -> Residual:
    body = nn.Sequential(conv_bn(inputs, width, 3, stride), nn.ReLU(), conv_bn(width, width, 3))
    return Residual(body, inputs, width, stride)


def bottleneck(inputs: int, width: int, stride: int) -> Residual:
    body = nn.Sequential(
        conv_bn(inputs, width, 1), nn.ReLU(), conv_bn(width, width, 3, stride), nn.ReLU(), conv_bn(width, 4 * width, 1)
    )
    return Residual(body, inputs, 4 * width, stride)


def resnet(block, expansion: int, depths: tuple[int, ...], classes: int = 1000) -> nn.Sequential:
    layers: list[nn.Module] = [conv_bn(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for i in range(depth):
            layers.append(block(channels, width, 2 if stage > 0 and i == 0 else 1))
            channels = width * expansion
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def resnet18() -> nn.Module:
    return resnet(basic, 1, (2, 2, 2, 2))


def resnet50() -> nn.Module:
    return resnet(bottleneck, 4, (3, 4, 6, 3))
