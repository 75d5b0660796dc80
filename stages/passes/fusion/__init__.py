"""Passes that make single operators of groups, each a transform of the rule API."""
