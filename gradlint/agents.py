"""gradlint for coding agents: a Model Context Protocol server on standard input and output.

Each tool is a command of gradlint in a process of its own, started in the server's working folder:
a program that is traced cannot write into the protocol, and what a client cancels is ended.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, Literal

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from gradlint import __version__

INSTRUCTIONS = """\
gradlint finds where PyTorch training code breaks autograd. After changing training code call
`check` on the files that changed; `explain` says what a code means; `fix` shows or writes repairs,
each of which was tried; `trace` runs a script and reports what autograd did in it."""

Severity = Literal["note", "warning", "error"]


async def check(
    paths: list[str],
    select: list[str] | None = None,
    min_severity: Severity = "note",
    importers: bool = False,
    diff_base: str | None = None,
) -> dict[str, Any]:
    """Find where the training code under these files and folders breaks autograd, without running
    it.

    `select` keeps these rules only (codes or their beginnings), `importers` checks the files that
    import these, too, `diff_base` keeps what is new since a commit of git. Of each finding: the
    rule's code, what happens (`message`), what to do (`help`), the place to change, and the fix, if
    there is one that was tried.
    """
    options = ["--output-format=json", f"--min-severity={min_severity}", *_selecting(select)]
    options += ["--importers"] * importers + [
        f"--diff-base={each}" for each in (diff_base,) if each is not None
    ]
    return {"findings": json.loads(await _said("check", *options, "--", *paths))}


async def explain(code: str) -> str:
    """The page of a rule, by its code or name: what it reports and why, an example, the fix, its
    limits.
    """
    return await _said("rule", "--", code)


async def fix(
    paths: list[str], select: list[str] | None = None, unsafe: bool = False, write: bool = False
) -> dict[str, Any]:
    """Repair what can be repaired under these files and folders; every repair was tried, and its
    finding is gone.

    Without `write` no file is changed. `unsafe` takes repairs, too, that change more than the bug.
    `patch` is the change, as a unified diff.
    """
    options = [*_selecting(select), *["--unsafe-fixes"] * unsafe]
    patch = await _said("check", "--diff", *options, "--", *paths)
    if write and patch:
        await _said("check", "--fix", "--quiet", *options, "--", *paths)
    return {"patch": patch, "written": write and bool(patch)}


async def trace(
    script: str, arguments: list[str] | None = None, steps: int | None = 3
) -> dict[str, Any]:
    """Run a training script (this executes it) and report what autograd did, step by step.

    `arguments` are the words of its command line; the run is ended after so many optimizer `steps`.
    Needs torch where gradlint is installed. `ended` is the exception that ended the program, if one
    did.
    """
    options = [f"--steps={each}" for each in (steps,) if each is not None]
    with tempfile.TemporaryDirectory(prefix="gradlint-") as folder:
        report = pathlib.Path(folder) / "report.json"
        options += ["--output-format=json", f"--output-file={report}"]
        ran = await _run("trace", *options, os.path.join(".", script), *(arguments or ()))
        if not report.is_file() or not report.stat().st_size:
            raise ToolError(_complaint(ran))
        told: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return told


def server() -> MCPServer:
    """The server with its tools."""
    made = MCPServer(
        "gradlint", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING"
    )
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    made.add_tool(check, annotations=reads)
    made.add_tool(explain, annotations=reads)
    made.add_tool(
        fix,
        annotations=ToolAnnotations(
            destructive_hint=True, idempotent_hint=True, open_world_hint=False
        ),
    )
    made.add_tool(trace, annotations=ToolAnnotations(destructive_hint=True, open_world_hint=True))
    return made


def serve() -> None:
    """Answer on standard input and output until the client closes them."""
    server().run("stdio")


def _selecting(codes: Sequence[str] | None) -> list[str]:
    return [f"--select={','.join(codes)}"] if codes else []


async def _said(*arguments: str) -> str:
    """What a command prints; its complaint, where it could not run, is the tool's error."""
    ran = await _run(*arguments)
    if ran.returncode not in (0, 1):
        raise ToolError(_complaint(ran))
    return ran.stdout.decode()


async def _run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-P", "-m", "gradlint", *arguments]
    ran: subprocess.CompletedProcess[bytes] = await anyio.run_process(
        command, check=False, input=b""
    )
    return ran


def _complaint(ran: subprocess.CompletedProcess[bytes]) -> str:
    lines = ran.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"gradlint left with exit code {ran.returncode} and said nothing"
