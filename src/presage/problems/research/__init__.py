"""Building blocks of current research models: triangle updates, gated delta rules, linear attention, experts' gates."""
