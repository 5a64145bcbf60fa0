"""A fleet on paper: the simulation of its caches, what it needs, and docs/scaling.md."""
