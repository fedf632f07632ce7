"""For authors of new problems, forecasters and policies: templates to start from, and checks that need no GPU."""
