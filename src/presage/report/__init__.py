"""Reports: figures and self-contained pages that work offline."""
