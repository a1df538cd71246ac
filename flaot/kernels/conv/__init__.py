"""Conv and FusedConv on CPUs: one implementation per way of computing it; the cheapest that fits is chosen by shape."""

from flaot.kernels.conv import depthwise, gemm, plain, stem, winograd

__all__ = ["depthwise", "gemm", "plain", "stem", "winograd"]
