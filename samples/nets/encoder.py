"""A pre-norm transformer encoder over already embedded tokens, attention spelt out in matrix products."""

from __future__ import annotations

import torch
from torch import nn


class Attention(nn.Module):
    """Multi-head self-attention: softmax(q k^T / sqrt(d)) v."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, steps, width = x.shape
        q, k, v = self.qkv(x).view(batch, steps, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-2, -1) * self.scale, dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, steps, width))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(width), Attention(width, heads))
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(x)
        return x + self.mlp(x)


class Encoder(nn.Module):
    def __init__(self, layers: int, width: int, heads: int, steps: int) -> None:
        super().__init__()
        self.position = nn.Parameter(0.02 * torch.randn(1, steps, width))
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(layers)], nn.LayerNorm(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x + self.position)
