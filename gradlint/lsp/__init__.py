"""The language server: what gradlint says of a file while it is written."""
