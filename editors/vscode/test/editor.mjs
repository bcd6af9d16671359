// Runs test/inside.ts in a real editor: code-server (CODE_SERVER names its command) with a headless Chromium (CHROMIUM)
// before it. GRADLINT is the command that is tried.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as net from "node:net";
import * as os from "node:os";
import * as path from "node:path";

const { CODE_SERVER = "code-server", CHROMIUM = "chromium", GRADLINT = "gradlint", NO_TORCH } = process.env;
const root = path.resolve(import.meta.dirname, "..");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "gradlint-editor-"));
const project = path.join(folder, "project");
const TRAIN = `import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for features in torch.randn(9, 5, 3):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(features).detach(), features[:, :1])
    loss.backward()
    optimizer.step()
`;

fs.mkdirSync(path.join(project, ".vscode"), { recursive: true });
fs.writeFileSync(path.join(project, "train.py"), TRAIN);
fs.writeFileSync(
  path.join(project, ".vscode", "settings.json"),
  JSON.stringify({ "gradlint.path": GRADLINT, "gradlint.trace.steps": 1, "security.workspace.trust.enabled": false }),
);
if (NO_TORCH) {
  fs.writeFileSync(path.join(project, "no-torch"), "");
}

const port = await free();
const host = `127.0.0.1:${port}`;
const data = ["--user-data-dir", path.join(folder, "data"), "--extensions-dir", path.join(folder, "extensions")];
const [command, ...words] = CODE_SERVER.split(" ");
const serving = ["--auth", "none", "--bind-addr", host, "--disable-telemetry", "--disable-update-check"];
serving.push("--disable-workspace-trust");
const server = spawn(command, [...words, ...serving, ...data, project], { stdio: ["ignore", "pipe", "pipe"] });
let log = "";
server.stdout.on("data", (part) => (log += part));
server.stderr.on("data", (part) => (log += part));
let browser;
try {
  await until(() => listening(port), 120);
  const remote = (file) => `vscode-remote://${host}${file}`;
  const payload = [
    ["extensionDevelopmentPath", remote(root)],
    ["extensionTestsPath", remote(path.join(root, "dist/test/inside.js"))],
  ];
  const query = new URLSearchParams({ folder: project, payload: JSON.stringify(payload) });
  const options = ["--headless=new", "--no-sandbox", "--disable-gpu", `--user-data-dir=${path.join(folder, "browser")}`];
  browser = spawn(CHROMIUM, [...options, "--window-size=1400,900", `http://${host}/?${query}`], { stdio: "ignore" });
  const file = path.join(project, "outcome.json");
  await until(() => fs.existsSync(file), 240);
  const outcome = JSON.parse(fs.readFileSync(file, "utf8"));
  for (const [name, said] of Object.entries(outcome)) {
    console.log(`${said === "passed" ? "ok" : "not ok"} - ${name}${said === "passed" ? "" : `\n${said}`}`);
  }
  assert(Object.values(outcome).every((said) => said === "passed"));
} catch (error) {
  console.error(log.slice(-4000));
  throw error;
} finally {
  browser?.kill();
  server.kill();
}

function free() {
  return new Promise((resolve) => {
    const probe = net.createServer().listen(0, "127.0.0.1", () => {
      const { port: found } = probe.address();
      probe.close(() => resolve(found));
    });
  });
}

function listening(at) {
  return new Promise((resolve) => {
    const socket = net.connect(at, "127.0.0.1", () => socket.end(() => resolve(true)));
    socket.on("error", () => resolve(false));
  });
}

async function until(holds, seconds) {
  for (let turn = 0; turn < seconds * 2; turn++) {
    if (await holds()) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  throw new Error(`not within ${seconds} seconds`);
}
