"""Opt-in rewrites of arithmetic and of the ways to cut tensors."""
