"""Rules that join what is left of element-wise ops."""
