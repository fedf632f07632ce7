"""Evidence: numbers with names, from the screen, the history, the goal and the intent. What is not known is NaN."""
