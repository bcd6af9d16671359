// The extension: starts the language server, and runs the commands of the palette.
import { execFile, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { promisify } from "node:util";
import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, type ServerOptions } from "vscode-languageclient/node";
import { codeOf, command, rules, traceWords, type Rule } from "./command";

const RULES = "gradlint-rule";
const pages = new Map<string, string>(); // of rules, by code
let client: LanguageClient | undefined;
let storage: vscode.Uri;
let output: vscode.OutputChannel;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  storage = context.globalStorageUri;
  output = vscode.window.createOutputChannel("gradlint trace");
  const register = (name: string, run: (...given: never[]) => unknown) =>
    context.subscriptions.push(vscode.commands.registerCommand(`gradlint.${name}`, run));
  register("trace", trace);
  register("openPage", openPage);
  register("showRule", showRule);
  register("restart", restart);
  context.subscriptions.push(
    output,
    vscode.workspace.registerTextDocumentContentProvider(RULES, {
      provideTextDocumentContent: (uri) => pages.get(path.posix.basename(uri.path, ".md")) ?? "",
    }),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("gradlint.path") || change.affectsConfiguration("gradlint.settings")) {
        void restart();
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.stop();
}

function setting<T>(name: string, fallback: T): T {
  return vscode.workspace.getConfiguration("gradlint", vscode.window.activeTextEditor?.document.uri).get(name, fallback);
}

function folder(of?: vscode.Uri): string | undefined {
  const found = of && vscode.workspace.getWorkspaceFolder(of);
  return (found ?? vscode.workspace.workspaceFolders?.[0])?.uri.fsPath;
}

/** The Python that the Python extension uses, where that is installed. */
async function interpreter(): Promise<string | undefined> {
  const python = vscode.extensions.getExtension("ms-python.python");
  if (python === undefined) {
    return undefined;
  }
  const api = python.isActive ? python.exports : await python.activate();
  return api?.environments?.getActiveEnvironmentPath()?.path;
}

async function executable(of?: vscode.Uri): Promise<string> {
  return command({
    folder: folder(of),
    setting: setting("path", ""),
    interpreter: await interpreter(),
    windows: process.platform === "win32",
    exists: fs.existsSync,
  });
}

async function start(): Promise<void> {
  const started = await executable();
  const server: ServerOptions = { command: started, args: ["server"], options: { cwd: folder() } };
  const options: LanguageClientOptions = {
    documentSelector: [
      { scheme: "file", language: "python" },
      { scheme: "untitled", language: "python" },
    ],
    initializationOptions: setting("settings", {}),
  };
  client = new LanguageClient("gradlint", "gradlint", server, options);
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const hint = `${started} could not be started as a server: pip install 'torch-gradlint[lsp]', or set gradlint.path.`;
    void vscode.window.showErrorMessage(`gradlint: ${hint}`);
    console.error("gradlint:", error);
  }
}

async function restart(): Promise<void> {
  const before = client;
  client = undefined;
  await before?.dispose();
  pages.clear();
  await start();
}

/** Runs a script, the active editor's where none is named, and shows the page: its file, when the run is over. */
async function trace(script?: vscode.Uri): Promise<string | undefined> {
  const named = script instanceof vscode.Uri ? await vscode.workspace.openTextDocument(script) : undefined;
  const document = named ?? vscode.window.activeTextEditor?.document;
  if (document === undefined || document.languageId !== "python" || document.isUntitled) {
    void vscode.window.showInformationMessage("gradlint: open the script that is to be run.");
    return undefined;
  }
  await document.save();
  await vscode.workspace.fs.createDirectory(storage);
  const page = pageFile();
  fs.rmSync(page, { force: true });
  const words = traceWords(document.uri.fsPath, page, setting("trace.steps", 20), setting("trace.arguments", []));
  const cwd = folder(document.uri) ?? path.dirname(document.uri.fsPath);
  const started = await executable(document.uri);
  const title = `gradlint traces ${path.basename(document.uri.fsPath)}`;
  const options = { location: vscode.ProgressLocation.Notification, cancellable: true, title };
  await vscode.window.withProgress(options, (_progress, cancelled) => ran(started, words, cwd, cancelled));
  if (!fs.existsSync(page)) {
    void vscode.window.showErrorMessage("gradlint: the run left no page; the output says why.");
    output.show(true);
    return undefined;
  }
  return openPage();
}

function pageFile(): string {
  return path.join(storage.fsPath, "trace.html");
}

/** Runs a command to its end, with what it prints in our panel of the output; SIGINT is what a report is written on. */
function ran(started: string, words: readonly string[], cwd: string, cancelled: vscode.CancellationToken): Promise<void> {
  output.clear();
  output.appendLine(`> ${started} ${words.join(" ")}`);
  return new Promise((resolve) => {
    const running = spawn(started, words, { cwd, stdio: ["ignore", "pipe", "pipe"] });
    cancelled.onCancellationRequested(() => running.kill("SIGINT"));
    running.stdout.setEncoding("utf8").on("data", (part: string) => output.append(part));
    running.stderr.setEncoding("utf8").on("data", (part: string) => output.append(part));
    running.on("error", (error) => output.appendLine(String(error)));
    running.on("close", () => resolve());
  });
}

/** Shows the page of the last trace; its file. */
function openPage(): string | undefined {
  const page = pageFile();
  if (!fs.existsSync(page)) {
    void vscode.window.showInformationMessage("gradlint: nothing was traced yet.");
    return undefined;
  }
  const panel = vscode.window.createWebviewPanel("gradlint.page", "gradlint trace", vscode.ViewColumn.Beside, {
    enableScripts: true,
    localResourceRoots: [],
  });
  panel.webview.html = fs.readFileSync(page, "utf8");
  return page;
}

/** Shows the page of a rule: that of the finding at the cursor, or one that is picked. */
async function showRule(given?: string): Promise<string | undefined> {
  const found = await known();
  const code = typeof given === "string" ? given : codeAtCursor();
  const rule = found.find((each) => each.code === code) ?? (code === undefined ? await picked(found) : undefined);
  if (rule === undefined) {
    return undefined;
  }
  pages.set(rule.code, rule.explanation);
  const uri = vscode.Uri.from({ scheme: RULES, path: `/${rule.code}.md` });
  await vscode.commands.executeCommand("markdown.showPreviewToSide", uri);
  return rule.code;
}

async function known(): Promise<Rule[]> {
  const words = ["rule", "--output-format=json"];
  const options = { cwd: folder(), maxBuffer: 1 << 26 };
  return rules((await promisify(execFile)(await executable(), words, options)).stdout);
}

function codeAtCursor(): string | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    return undefined;
  }
  return vscode.languages
    .getDiagnostics(editor.document.uri)
    .filter((each) => each.range.contains(editor.selection.active))
    .map((each) => codeOf(each.source, each.code))
    .find((code) => code !== undefined);
}

async function picked(found: readonly Rule[]): Promise<Rule | undefined> {
  const items = found.map((rule) => ({ label: `${rule.code} ${rule.name}`, detail: rule.summary, rule }));
  const options = { placeHolder: "A rule", matchOnDetail: true };
  return (await vscode.window.showQuickPick(items, options))?.rule;
}
