"""The simulator of chips: an adapter inside the native library that serves every device type without an adapter of its own.

It holds a chip's memory, checks every limit of the descriptor on every launch, and computes in the chip's element types: operands of
float16 and bfloat16 are widened, the portable kernel runs on float32, results are rounded as the descriptor says.
"""
