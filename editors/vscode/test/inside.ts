// Runs inside an editor, in a folder with train.py: what a user sees and does. test/editor.mjs starts it.
import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";

/** What the editor calls; the outcome goes to a file, too, which whoever started the editor waits for. */
export async function run(): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  assert(folder !== undefined);
  const outcome: Record<string, string> = {};
  for (const [name, scenario] of Object.entries(scenarios)) {
    try {
      await scenario(folder);
      outcome[name] = "passed";
    } catch (error) {
      outcome[name] = error instanceof Error ? String(error.stack) : String(error);
    }
  }
  const file = path.join(folder.fsPath, "outcome.json");
  fs.writeFileSync(`${file}.part`, JSON.stringify(outcome));
  fs.renameSync(`${file}.part`, file);
}

const scenarios: Record<string, (folder: vscode.Uri) => Promise<void>> = {
  "a finding is shown in the script": async (folder) => {
    const document = await opened(folder);
    const [found] = await until(() => ours(document), (all) => all.length > 0);
    assert.equal(found?.source, "gradlint");
    assert.match(JSON.stringify(found?.code), /GL102/);
  },
  "its fix is a quick fix, and the finding goes with it": async (folder) => {
    const document = await opened(folder);
    const [found] = await until(() => ours(document), (all) => all.length > 0);
    assert(found !== undefined);
    const ask = "vscode.executeCodeActionProvider";
    const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(ask, document.uri, found.range, "quickfix");
    const fix = actions.find((each) => each.title.startsWith("GL102:") && each.edit !== undefined);
    assert(fix?.edit !== undefined, `no fix among ${actions.map((each) => each.title).join(", ")}`);
    await vscode.workspace.applyEdit(fix.edit);
    await until(() => ours(document), (all) => all.length === 0);
    await vscode.commands.executeCommand("workbench.action.files.revert");
  },
  "the page of a rule is shown": async () => {
    assert.equal(await vscode.commands.executeCommand("gradlint.showRule", "GL102"), "GL102");
  },
  "a trace is run and its page shown": async (folder) => {
    if (fs.existsSync(path.join(folder.fsPath, "no-torch"))) {
      return;
    }
    const { uri } = await opened(folder);
    const page = await vscode.commands.executeCommand<string | undefined>("gradlint.trace", uri);
    assert(page !== undefined, "the run left no page");
    assert.match(fs.readFileSync(page, "utf8"), /GL102/);
    assert.equal(await vscode.commands.executeCommand("gradlint.openPage"), page);
  },
};

async function opened(folder: vscode.Uri): Promise<vscode.TextDocument> {
  const document = await vscode.workspace.openTextDocument(vscode.Uri.joinPath(folder, "train.py"));
  await vscode.window.showTextDocument(document, vscode.ViewColumn.One);
  return document;
}

function ours(document: vscode.TextDocument): vscode.Diagnostic[] {
  return vscode.languages.getDiagnostics(document.uri).filter((each) => each.source === "gradlint");
}

/** The value once it is as it should be. */
async function until<T>(ask: () => T, holds: (value: T) => boolean): Promise<T> {
  for (let turn = 0; turn < 600; turn++) {
    const value = ask();
    if (holds(value)) {
      return value;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`after a minute it is ${JSON.stringify(ask())}`);
}
