"""Watching the real program: launch it, record what autograd did, and write the tape that the rules read."""
