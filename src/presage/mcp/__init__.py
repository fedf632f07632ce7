"""The server that coding agents talk to, by the Model Context Protocol.

The server's own process only checks, counts and hands over (`server.py`, `session.py`). What a tool does is done in a
worker, a process of ours that can be ended when its call is cancelled (`workers.py`, `worker.py`).
"""
