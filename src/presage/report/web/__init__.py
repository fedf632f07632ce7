"""The web view: a small server that shows the runs of a folder, live and read-only. It needs the extra `ui`."""
