"""What is right to do next in a task of MiniWoB++, read from the tree of its page; for labels and scripted agents."""
