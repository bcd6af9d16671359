"""The library's model of Python itself: its builtins, containers and standard library."""
