"""Seeded weights that keep a network's activations in the range a trained one has."""

from __future__ import annotations

import torch
from torch import nn

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


def settle(model: nn.Module, example: torch.Tensor, seed: int = 7) -> nn.Module:
    """Gives every BatchNorm a seeded scale and shift and the running statistics of its own inputs; returns the model in eval mode."""
    generator = torch.Generator().manual_seed(seed)
    norms = [m for m in model.modules() if isinstance(m, _NORMS)]
    for norm in norms:
        nn.init.uniform_(norm.weight, 0.5, 1.5, generator=generator)
        nn.init.normal_(norm.bias, 0.0, 0.1, generator=generator)
        norm.momentum = None  # the running statistics become the plain mean over the batches seen
    if norms:
        model.train()
        with torch.no_grad():
            model(torch.randn(4, *example.shape[1:], generator=generator))
    return model.eval()
