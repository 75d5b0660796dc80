"""Types: how they are inferred, joined and refined."""
