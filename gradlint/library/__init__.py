"""What gradlint knows of Python, torch and the frameworks around it: data, and small handlers. No
analysis.
"""

import importlib
import pkgutil

from gradlint import interpret


def load() -> None:
    """Registers every handler: a module of the interpreter or of this package is registered by
    being there.
    """
    for package in (interpret.__name__, __name__):
        path = importlib.import_module(package).__path__
        for found in pkgutil.walk_packages(path, f"{package}."):
            importlib.import_module(found.name)
