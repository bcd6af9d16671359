"""Programs by the ways that people spell them, with what their fixes write.

The form is that of `mended.py`. A program without `-` and `+` is found at fault and left alone.
"""

from spellings import (
    detached,
    devices,
    functions,
    losses,
    modes,
    numbers,
    optimizers,
    parameters,
    scalers,
    steps,
    windows,
    writes,
)

PROGRAMS: dict[str, str] = {
    **detached.PROGRAMS,
    **devices.PROGRAMS,
    **functions.PROGRAMS,
    **losses.PROGRAMS,
    **modes.PROGRAMS,
    **numbers.PROGRAMS,
    **optimizers.PROGRAMS,
    **parameters.PROGRAMS,
    **scalers.PROGRAMS,
    **steps.PROGRAMS,
    **windows.PROGRAMS,
    **writes.PROGRAMS,
}
