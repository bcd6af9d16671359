"""A tree of all that a folder can hold besides programs: files that are none, names that are no
text, links, pipes.
"""

from __future__ import annotations

import os
import pathlib

GOOD = (
    b"import torch\nmodel = torch.nn.Linear(2, 2)\nmodel(torch.zeros(2, "
    b"2)).mean().detach().backward()\n"
)
LARGE = 10_000_000  # bytes

# What is read: its one error is found, wherever it stands.
READ = {
    "good.py": GOOD,
    "latin.py": b"# coding: latin-1\ns = '\xe9'\n" + GOOD,
    "marked.py": b"\xef\xbb\xbf" + GOOD,
    "old-mac.py": GOOD.replace(b"\n", b"\r"),
    "form-feeds.py": b"\x0c" + GOOD.replace(b"\n", b"\x0c\n"),
    "lists.py": GOOD + b"x = " + b"[" * 150 + b"]" * 150 + b"\n",
    "lambdas.py": GOOD + b"x = " + b"lambda: " * 2000 + b"1\n",
    "choices.py": GOOD + b"x = " + b"1 if a else " * 2500 + b"1\n",
    "clauses.py": GOOD + b"x = [" + b"a " + b"for a in b " * 3000 + b"]\n",
    "decorators.py": GOOD + b"@d\n" * 3000 + b"def f(): pass\n",
    "arguments.py": GOOD + b"f(" + b"a," * 30_000 + b")\n",
    "classes.py": GOOD
    + b"".join(b" " * depth + b"class A:\n" for depth in range(95))
    + b" " * 95
    + b"pass\n",
    "formats.py": GOOD + b"x = f'" + b"{a}" * 20_000 + b"'\n",
    "strings.py": GOOD + b"x = (" + b"'a'\n" * 20_000 + b")\n",
    "bases.py": GOOD
    + b"class D("
    + b"a." * 950
    + b"Dataset):\n def __getitem__(self, i): return i\n",
    "guard.py": GOOD + b"if " + b"__name__." * 950 + b"x == 1:\n pass\n",
    "conditions.py": GOOD + b"if " + b"a and " * 30_000 + b"b:\n pass\n",
    "comparisons.py": GOOD + b"x = a" + b" < b" * 30_000 + b"\n",
    "negations.py": GOOD + b"x = " + b"not " * 2500 + b"a\n",
    "subscripts.py": GOOD + b"x = a" + b"[0]" * 2500 + b"\n",
    "suppressed.py": GOOD + b"x = 1  # gradlint: ignore[GL101] no\n" * 20_000,
    "large.py": GOOD + b"# " + b"import(" * (LARGE // 7) + b"\n",
    "folder.py/inside.py": GOOD,
    "ignoring/code.py": GOOD,
}
READ_NAMES = {
    b"\xff\xfe.py": "\\udcff\\udcfe.py",
    b"new\nline.py": "new\\nline.py",
    b"\x1b[31mred.py": "\\x1b[31mred.py",
}

# What is not: one GL001 that says why.
REFUSED = {
    "bytes.py": (bytes(range(256)), "not valid utf-8"),
    "unknown-coding.py": (b"# coding: klingon\n" + GOOD, "unknown encoding"),
    "rot13.py": (b"# -*- coding: rot13 -*-\n" + GOOD, "rot13 is not a text encoding"),
    "undefined.py": (b"# coding: undefined\n" + GOOD, "not valid undefined"),
    "utf16.py": ("x = 1\n".encode("utf-16"), "encoding"),
    "null.py": (GOOD + b"\0", "null bytes"),
    "python2.py": (b"import torch\nprint 'x'\nexec 'y' in z\n", "Missing parentheses"),
    "parentheses.py": (b"(" * 3000 + b")" * 3000, "too many nested parentheses"),
    "minus.py": (b"-" * 100_000 + b"1", ""),
    "attributes.py": (GOOD + b"x = a" + b".b" * 20_000 + b"\n", ""),
    "sums.py": (GOOD + b"x = " + b"1+" * 50_000 + b"1\n", ""),
}
LINKS = {
    ".#train.py": "me@host.123:99",
    "self.py": "self.py",
    "one.py": "two.py",
    "two.py": "one.py",
    "dangling.py": "nothing.py",
}
PASSED_BY = {"here": ".", "device.py": "/dev/zero", "to-pipe.py": "pipe.py"}


def plant(root: pathlib.Path) -> None:
    """Puts it all under `root`."""
    for name, content in {
        **READ,
        **{name: content for name, (content, _) in REFUSED.items()},
    }.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(content)
    for raw in READ_NAMES:
        with open(os.path.join(os.fsencode(root), raw), "wb") as stream:
            stream.write(GOOD)
    for name, target in {**LINKS, **PASSED_BY}.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe.py")
    (root / "ignoring" / ".gitignore").write_bytes(b"\xff\xfe[[[\n!!!\n\\\n")
    (root / "folder.py" / ".gitignore").mkdir()
