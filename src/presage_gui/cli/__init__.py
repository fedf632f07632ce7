"""The commands of `presage-gui`, one file each. They contain no logic of their own."""
