"""The environments in which actions are carried out, one file each."""
