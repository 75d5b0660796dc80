"""Passes that spell a computation with fewer operators, or move operators to where they cancel."""
