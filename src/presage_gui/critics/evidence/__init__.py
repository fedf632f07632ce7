"""Evidence: named numbers computed from the screen, the history, the goal and the intent. Unknown values are NaN."""
