"""Source files: which to check, which can matter, and their text and tree."""
