"""The server for coding agents, as the client of the protocol's own package meets it."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from commandline import Run

pytest.importorskip(
    "mcp", reason="the server for agents needs mcp: pip install 'torch-gradlint[mcp]'"
)

from mcp import Client, StdioServerParameters

import gradlint.agents

SCHEMA = json.loads(
    (pathlib.Path(gradlint.__file__).parent / "schemas/findings-1.json").read_text(encoding="utf-8")
)
TRAIN = """\
import torch

print("Content-Length: 0")
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for features in torch.randn(9, 5, 3):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(features), features[:, :1])
    loss.backward()
    optimizer.step()
"""
CUT = TRAIN.replace("model(features),", "model(features).detach(),")
ADDING = TRAIN.replace("    optimizer.zero_grad()\n", "")


@pytest.fixture
def project(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "train.py").write_text(CUT)
    return tmp_path


def met(server: Any, scenario: Callable[[Client], Awaitable[None]]) -> None:
    """Plays a scenario with a server: one in this process, or a command that is started."""

    async def play() -> None:
        async with Client(server) as client:
            await scenario(client)

    asyncio.run(asyncio.wait_for(play(), 120))


def test_an_agent_checks_repairs_and_traces(project: pathlib.Path) -> None:
    async def scenario(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == {"check", "explain", "fix", "trace"}
        assert all(tool.description for tool in tools.values())
        hints = {
            name: tool.annotations and tool.annotations.read_only_hint
            for name, tool in tools.items()
        }
        assert hints == {"check": True, "explain": True, "fix": None, "trace": None}

        found = await value(client, "check", paths=["train.py"], min_severity="warning")
        jsonschema.validate(found["findings"], SCHEMA)
        (finding,) = found["findings"]
        assert (finding["code"], finding["location"]["row"]) == ("GL102", 8)

        page = await client.call_tool("explain", {"code": "GL102"})
        assert "# detached-loss (GL102)" in text(page)

        seen = await value(client, "fix", paths=["train.py"], select=["GL102"], unsafe=True)
        assert "-    loss = torch.nn.functional.mse_loss(model(features).detach()," in seen["patch"]
        assert not seen["written"]

        traced = await value(client, "trace", script="train.py", steps=1)
        assert "does not require grad" in traced["ended"]
        assert "GL102" in [each["code"] for each in traced["findings"]]

        (project / "train.py").write_text(ADDING)
        written = await value(client, "fix", paths=["train.py"], write=True)
        assert written["written"]
        assert (project / "train.py").read_text() == TRAIN

    command = ["-c", "from gradlint.cli import main; main()", "mcp"]
    met(
        StdioServerParameters(
            command=sys.executable, args=command, cwd=project, env=dict(os.environ)
        ),
        scenario,
    )


def test_what_cannot_be_done_is_an_error_of_the_tool(
    project: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)

    async def scenario(client: Client) -> None:
        cases: list[tuple[str, dict[str, Any], str]] = [
            (
                "check",
                {"paths": ["trian.py"]},
                "trian.py: no such file or folder; did you mean 'train.py'?",
            ),
            ("explain", {"code": "--help"}, "no rule has the code or name '--help'"),
        ]
        for tool, arguments, told in cases:
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert told in text(result)

    met(gradlint.agents.server(), scenario)


def text(result: Any) -> str:
    return "".join(part.text for part in result.content)


async def value(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    assert isinstance(result.structured_content, dict)
    assert json.loads(text(result)) == result.structured_content
    return result.structured_content


def test_without_its_package_the_command_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anyio", None)  # which comes with it, and is imported first
    monkeypatch.delitem(sys.modules, "gradlint.agents", raising=False)
    ran = run("mcp")
    assert (ran.code, ran.err) == (
        2,
        "gradlint: the server needs mcp: pip install 'torch-gradlint[mcp]'\n",
    )
