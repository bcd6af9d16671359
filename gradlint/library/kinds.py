"""The classes of `torch.nn` that layers are derived from, and the modules that they are defined
in.
"""

from gradlint.interpret.lineage import alias, parent
from gradlint.library.layer_effects import layer_bases

_HOMES = (
    "activation", "adaptive", "batchnorm", "channelshuffle", "container", "conv", "distance",
    "dropout", "flatten",
    "fold", "instancenorm", "linear", "loss", "normalization", "padding", "pixelshuffle",
    "pooling", "rnn", "sparse",
    "transformer", "upsampling",
)  # fmt: skip

for _home in _HOMES:
    alias(f"torch.nn.modules.{_home}", "torch.nn")
    alias(f"torch.nn.{_home}", "torch.nn")  # what becomes of it where `nn.modules` is read as `nn`
for _name, _base in layer_bases().items():
    parent(f"torch.nn.{_name}", f"torch.nn.{_base}")
for _base in set(layer_bases().values()) - layer_bases().keys():
    parent(f"torch.nn.{_base}", "torch.nn.Module")
