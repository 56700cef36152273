"""The shapes of files that people and other tools write and read; changes need a decision record."""
