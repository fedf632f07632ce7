"""Find what is on a screen from its pixels alone: lines of text, words, boxes and elements."""
