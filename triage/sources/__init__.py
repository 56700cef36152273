"""Kinds of input, one module each; see :mod:`triage.sources.base`."""
