"""Oracles: the correct next steps of MiniWoB++ tasks, read from the page's DOM, for labels and scripted agents."""
