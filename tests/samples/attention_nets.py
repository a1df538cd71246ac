"""Small networks of attention as people write them, exported by ``python -m tests.samples.attention_nets DIR dynamo|script``."""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, STEPS, BATCH = 32, 4, 6, 2


class Written(nn.Module):
    """As in HuggingFace's BERT: views and transposes, the product divided, an additive mask where asked."""

    def __init__(self, masked: bool = False) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.masked = masked

    def heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:-1], HEADS, WIDTH // HEADS).permute(0, 2, 1, 3)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
        if mask is not None:
            scores = scores + (1.0 - mask[:, None, None, :]) * torch.finfo(torch.float32).min
        y = scores.softmax(-1) @ v
        return y.permute(0, 2, 1, 3).contiguous().view(x.shape)


class Merged(Written):
    """As in BART: heads in the batch, the query scaled, products of stacks."""

    def heads(self, x: torch.Tensor) -> torch.Tensor:
        return super().heads(x).reshape(-1, STEPS, WIDTH // HEADS)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        q, k, v = self.heads(self.q(x) * (WIDTH // HEADS) ** -0.5), self.heads(self.k(x)), self.heads(self.v(x))
        y = torch.bmm(torch.bmm(q, k.transpose(1, 2)).softmax(-1), v)
        return y.view(-1, HEADS, STEPS, WIDTH // HEADS).transpose(1, 2).reshape(x.shape)


class Decoder(Written):
    """As in GPT-2 and Llama: causal by a constant mask, fewer key heads, repeated."""

    def __init__(self) -> None:
        super().__init__()
        self.k, self.v = (nn.Linear(WIDTH, WIDTH // 2) for _ in range(2))
        self.register_buffer("seen", torch.ones(STEPS, STEPS).tril().bool())

    def few(self, x: torch.Tensor) -> torch.Tensor:
        x = x.view(-1, STEPS, HEADS // 2, WIDTH // HEADS).transpose(1, 2)
        return x[:, :, None].expand(-1, -1, 2, -1, -1).reshape(-1, HEADS, STEPS, WIDTH // HEADS)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        q, k, v = self.heads(self.q(x)), self.few(self.k(x)), self.few(self.v(x))
        scores = (q @ k.transpose(2, 3) * (WIDTH // HEADS) ** -0.5).masked_fill(~self.seen, float("-inf"))
        return (F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(x.shape)


class Functional(Written):
    """F.scaled_dot_product_attention."""

    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        if mask is not None:
            mask = mask[:, None, None, :].expand(-1, 1, STEPS, -1)
        return F.scaled_dot_product_attention(q, k, v, mask, is_causal=self.causal).transpose(1, 2).reshape(x.shape)


class Multihead(nn.Module):
    """nn.MultiheadAttention on itself; ``weights`` asks for the weights too, which takes another way through torch."""

    def __init__(self, batch_first: bool = True, weights: bool = False) -> None:
        super().__init__()
        self.inner, self.weights = nn.MultiheadAttention(WIDTH, HEADS, batch_first=batch_first), weights

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.inner(x, x, x, need_weights=self.weights)[0]
        return y


X, FLOAT_MASK, BOOL_MASK = (BATCH, STEPS, WIDTH), "float", "bool"
NETS: dict[str, tuple[nn.Module, tuple[int, ...], str]] = {
    "written": (Written(), X, ""),
    "written_one": (Written(), (1, STEPS, WIDTH), ""),
    "written_mask": (Written(), X, FLOAT_MASK),
    "merged": (Merged(), X, ""),
    "merged_one": (Merged(), (1, STEPS, WIDTH), ""),
    "decoder": (Decoder(), X, ""),
    "sdpa": (Functional(), X, ""),
    "sdpa_causal": (Functional(causal=True), X, ""),
    "sdpa_mask": (Functional(), X, FLOAT_MASK),
    "sdpa_bool": (Functional(), X, BOOL_MASK),
    "mha": (Multihead(), X, ""),
    "mha_weights": (Multihead(weights=True), X, ""),
    "mha_length_first": (Multihead(batch_first=False), (STEPS, BATCH, WIDTH), ""),
    "mha_length_first_one": (Multihead(batch_first=False, weights=True), (STEPS, 1, WIDTH), ""),
    "layer": (nn.TransformerEncoderLayer(WIDTH, HEADS, 64, batch_first=True), X, ""),
}


def main(folder: Path, exporter: str) -> None:
    warnings.simplefilter("ignore")
    for name, (net, shape, mask) in NETS.items():
        torch.manual_seed(1)
        args = [torch.randn(shape)]
        if mask:
            seen = torch.rand(shape[:2]) > 0.3
            seen[:, 0] = True
            args.append(seen if mask == BOOL_MASK else seen.float())
        names = ["x", "mask"][: len(args)]
        options = {"opset_version": 17} if exporter == "script" else {}
        try:
            torch.onnx.export(
                net.eval(), tuple(args), str(folder / f"{name}.onnx"), input_names=names, output_names=["y"],
                dynamo=exporter == "dynamo", verbose=False, **options,
            )
        except TypeError as e:
            print(f"{name}: {e}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
