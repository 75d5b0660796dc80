"""Tools for those who look at a compile: steps, differences, reports, the search for a fault."""
