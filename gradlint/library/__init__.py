"""What gradlint knows of Python, torch and the frameworks around it: data, and small handlers. No
analysis.
"""

import importlib
import pkgutil


def load() -> None:
    """Registers every handler: a module of this package is registered by being there."""
    for found in pkgutil.walk_packages(__path__, __name__ + "."):
        importlib.import_module(found.name)
