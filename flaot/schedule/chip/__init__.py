"""Whole-tensor steps on a chip to commands: what stays on chip, tiles, DMA, queues and waits."""
