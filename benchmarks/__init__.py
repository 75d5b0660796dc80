"""Side-by-side runs against peers, on real and on generated models."""
