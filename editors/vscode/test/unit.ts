// What can be tested without an editor.
import assert from "node:assert/strict";
import { test } from "node:test";
import { codeOf, command, rules, traceWords, type Place } from "../src/command";

const place = (given: Partial<Place>, ...there: string[]): Place => ({
  folder: "/project",
  setting: "",
  interpreter: undefined,
  windows: false,
  exists: (file) => there.includes(file),
  ...given,
});

test("the command is that of the setting, from the folder that is open", () => {
  assert.equal(command(place({ setting: "env/bin/gradlint" })), "/project/env/bin/gradlint");
  assert.equal(command(place({ setting: "/opt/gradlint" })), "/opt/gradlint");
  assert.equal(command(place({ setting: "gradlint-next" })), "gradlint-next");
});

test("without one it is that of the folder's environment, or beside the interpreter, or of the PATH", () => {
  const there = ["/project/venv/bin/gradlint", "/conda/bin/gradlint"];
  assert.equal(command(place({ interpreter: "/conda/bin/python" }, ...there)), "/project/venv/bin/gradlint");
  assert.equal(command(place({ interpreter: "/conda/bin/python", folder: "/other" }, ...there)), "/conda/bin/gradlint");
  assert.equal(command(place({ folder: undefined })), "gradlint");
});

test("Windows has its own names", () => {
  const file = "C:\\work\\.venv\\Scripts\\gradlint.exe";
  assert.equal(command(place({ folder: "C:\\work", windows: true }, file)), file);
});

test("the words of a script are not taken for ours", () => {
  assert.deepEqual(traceWords("/w/train.py", "/p.html", 3, ["--steps", "9"]), [
    "trace", "--html=/p.html", "--steps=3", "/w/train.py", "--steps", "9",
  ]);
  assert.deepEqual(traceWords("/w/train.py", "/p.html", 0, []), ["trace", "--html=/p.html", "/w/train.py"]);
});

test("a code is read from diagnostics of ours alone", () => {
  assert.equal(codeOf("gradlint", { value: "GL101", target: "https://example.org" }), "GL101");
  assert.equal(codeOf("gradlint", "GL101"), "GL101");
  assert.equal(codeOf("ruff", "F401"), undefined);
  assert.equal(codeOf("gradlint", undefined), undefined);
});

test("rules are a list", () => {
  assert.equal(rules('[{"code": "GL101"}]')[0]?.code, "GL101");
  assert.throws(() => rules("{}"), /no list/);
});
