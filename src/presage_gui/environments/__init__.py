"""Places where actions are carried out, one file each."""
