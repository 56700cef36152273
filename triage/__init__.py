"""triage: incident triage for AI-training GPU clusters, from the logs alone."""

__version__ = "0.1.0"
