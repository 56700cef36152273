"""Renderings of a report, one module each."""
