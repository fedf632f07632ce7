"""`presage-gui`: one file per command, no logic."""
