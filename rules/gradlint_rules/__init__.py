"""The rules of gradlint, one module each, named after its code."""
