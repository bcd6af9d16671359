"""The user's faults, as against ours."""


class UserError(Exception):
    """Something asked for that cannot be done; its text is one clear line, and the exit code is 2."""
