"""The Model Context Protocol server for coding agents.

The server's own process only checks requests, counts budgets and passes requests on (`server.py`, `session.py`). Tools
run in workers: subprocesses that the server can kill when a call is cancelled (`workers.py`, `worker.py`).
"""
