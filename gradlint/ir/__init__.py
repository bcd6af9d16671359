"""The intermediate representation: what the interpreter runs."""
