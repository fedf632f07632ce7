"""Reports: figures, self-contained pages that work offline, and the web view."""
