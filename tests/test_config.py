"""Settings: what they mean, and that every complaint names the file and the key."""

import pathlib

import pytest

from gradlint import config
from gradlint.errors import UserError
from gradlint.finding import Severity
from gradlint.settings import Selection, Settings


def settings(folder: pathlib.Path, text: str) -> Settings:
    (folder / "pyproject.toml").write_text("[tool.gradlint]\n" + text)
    return config.settings_finder(lambda found: found)(folder)


@pytest.mark.parametrize(
    ("text", "on", "off"),
    [
        ("", {"GL001", "GL002"}, set()),
        ("select = ['GL001']", {"GL001"}, {"GL002"}),
        ("select = ['GL0']", {"GL001", "GL002"}, {"GL101"}),
        ("ignore = ['GL002']", {"GL001"}, {"GL002"}),
        ("select = ['GL0']\nignore = ['GL002']", {"GL001"}, {"GL002"}),
        ("select = ['GL002']\nignore = ['GL0']", {"GL002"}, {"GL001"}),
        ("select = ['ALL']\nignore = ['GL0']", {"GL101"}, {"GL001", "GL002"}),
        ("select = ['GL001']\nextend-select = ['GL003']", {"GL001", "GL003"}, {"GL002"}),
        ("select = ['GL001']\nignore = ['GL001']", set(), {"GL001"}),
    ],
)
def test_the_longest_selector_decides(
    tmp_path: pathlib.Path, text: str, on: set[str], off: set[str]
) -> None:
    found = settings(tmp_path, text)
    assert {code for code in on | off if found.selects(code)} == on


@pytest.mark.parametrize(
    ("line", "on", "off"),
    [
        (Selection(select=("GL002",)), {"GL002"}, {"GL001", "GL003"}),
        (Selection(extend=("GL002",)), {"GL001", "GL002"}, {"GL003"}),
        (Selection(ignore=("GL001",)), set(), {"GL001", "GL002", "GL003"}),
    ],
)
def test_the_command_line_outweighs_the_file(
    tmp_path: pathlib.Path, line: Selection, on: set[str], off: set[str]
) -> None:
    found = settings(tmp_path, "select = ['GL001']\nignore = ['GL002']").overridden(line, (), {})
    assert {code for code in on | off if found.selects(code)} == on


def test_rules_are_switched_off_per_file(tmp_path: pathlib.Path) -> None:
    found = settings(tmp_path, "per-file-ignores = {'tests/' = ['GL0'], 'conf*.py' = ['GL001']}")
    assert not found.reports("GL001", tmp_path / "tests" / "deep" / "test_a.py")
    assert not found.reports("GL001", tmp_path / "docs" / "conf.py")
    assert found.reports("GL002", tmp_path / "docs" / "conf.py")
    assert found.reports("GL001", tmp_path / "src" / "a.py")


def test_the_nearest_file_with_settings_holds(tmp_path: pathlib.Path) -> None:
    settings(tmp_path, "fail-on = 'error'")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'a'\n")
    found = config.settings_finder(lambda each: each)(inner)
    assert (found.root, found.fail_on) == (tmp_path, Severity.ERROR)


def test_every_setting_is_read(tmp_path: pathlib.Path) -> None:
    found = settings(
        tmp_path,
        "exclude = ['a']\nextend-exclude = ['b']\nrespect-gitignore = false\nforce-exclude = true\n"
        "parts = false\nexclude-parts = ['c/']\noutput-format = 'json'\n"
        "min-severity = 'warning'\nfail-on = 'never'\n",
    )
    assert (found.exclude, found.extend_exclude) == (("a",), ("b",))
    assert (found.respect_gitignore, found.force_exclude, found.output_format) == (
        False,
        True,
        "json",
    )
    assert (found.parts, found.exclude_parts) == (False, ("c/",))
    assert (found.min_severity, found.fail_on) == (Severity.WARNING, "never")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("selcet = ['GL0']", "has no setting 'selcet'; did you mean 'select'?"),
        ("select = 'GL0'", "select: must be a list of strings, not 'GL0'"),
        ("select = [1]", "select: must be a list of strings"),
        ("ignore = ['GL0001']", "ignore: no rule has the code 'GL0001'; did you mean 'GL001'?"),
        ("ignore = ['']", "ignore: no rule has the code ''"),
        ("per-file-ignores = ['a']", "per-file-ignores: must be a table from patterns to codes"),
        ("per-file-ignores = {a = ['QQ']}", "per-file-ignores: no rule has the code 'QQ'"),
        ("output-format = 'jsn'", "output-format: must be one of "),
        ("output-format = 'jsn'", "did you mean 'json'?"),
        ("fail-on = 3", "fail-on: must be a string, not 3"),
        (
            "min-severity = 'never'",
            "min-severity: must be one of note, warning, error, not 'never'",
        ),
        ("force-exclude = 'yes'", "force-exclude: must be true or false, not 'yes'"),
        ("select = [", "cannot be read"),
    ],
)
def test_a_complaint_names_the_file_the_key_and_what_was_meant(
    tmp_path: pathlib.Path, text: str, complaint: str
) -> None:
    with pytest.raises(UserError) as raised:
        settings(tmp_path, text)
    assert "pyproject.toml" in str(raised.value)
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_settings_that_are_no_table_are_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\ngradlint = 3\n")
    with pytest.raises(UserError, match=r"tool\.gradlint must be a table"):
        config.settings_finder(lambda each: each)(tmp_path)
