"""gradlint: the linter that understands autograd."""

__version__ = "0.1.0"
