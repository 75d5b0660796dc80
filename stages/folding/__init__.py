"""Computing constants: engines, splats, what may not be folded."""
