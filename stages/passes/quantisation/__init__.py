"""Passes about quantised models."""
