"""A sequence tagger: two LSTM layers of 128 over 49 steps, one label per step."""

from __future__ import annotations

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, features: int = 40, hidden: int = 128, labels: int = 12) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, labels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.lstm(x)
        return self.head(hidden).log_softmax(-1)
