"""Fixes: what a rule sees of a file, how edits are applied to it, and how a mended program is held
against the old.
"""
