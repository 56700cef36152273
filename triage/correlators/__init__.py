"""Ideas of causality, one module each: events and series in, links and derived events out."""
