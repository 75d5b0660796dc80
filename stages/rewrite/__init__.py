"""The rule API: patterns, matches, replacements, and the driver that runs transforms."""
