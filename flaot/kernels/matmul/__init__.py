"""MatMul, Gemm and FusedMatMul on CPUs: portable code for every dtype and stride, vector code for float32."""

from flaot.kernels.matmul.gemm import GEMM, emit_gemm
from flaot.kernels.matmul.portable import MATMUL

__all__ = ["GEMM", "MATMUL", "emit_gemm"]
