// The page: the program on the left, what worker.js found in it on the right. The link holds the program.
const place = (id) => document.getElementById(id);
const program = place("program");
const here = import.meta.url;
const worker = new Worker(new URL("worker.js", here), { type: "module" });
let asked = 0;
let pending;
let loaded = false;
let mended; // the program with its fixes

worker.onmessage = ({ data }) => {
  loaded = true;
  if (data.failed !== undefined) {
    say(`Python could not be loaded: ${data.failed}`);
  } else if (data.number === asked) {
    show(data.found);
  }
};

function say(text) {
  place("status").textContent = text;
}

/** Checks what stands there, a moment after the last change of it. */
function check(wait) {
  clearTimeout(pending);
  number();
  pending = setTimeout(() => {
    say(loaded ? "Checking…" : "Loading Python…");
    worker.postMessage({ number: ++asked, text: program.value });
  }, wait);
}

function show(found) {
  const counted = found.findings.length === 1 ? "1 finding" : `${found.findings.length} findings`;
  say(found.error ?? `${counted}${found.all_fixes ? "" : " (without the fixes that move code)"}`);
  place("findings").replaceChildren(...found.findings.map(item));
  mended = found.mended;
  place("fix").disabled = mended === null;
  number(found.findings);
}

function item(finding) {
  const row = document.createElement("li");
  row.className = finding.severity;
  const line = document.createElement("button");
  line.type = "button";
  line.textContent = `line ${finding.location.row}`;
  line.onclick = () => select(finding);
  const rule = document.createElement("a");
  rule.href = new URL(`../rules/${finding.name}/`, here);
  rule.textContent = `${finding.code} ${finding.name}`;
  const message = document.createElement("p");
  message.textContent = finding.message;
  const help = document.createElement("p");
  help.textContent = [finding.help, finding.fix && `Fix: ${finding.fix.message}.`].filter(Boolean).join(" ");
  row.append(`${finding.severity}, `, line, ": ", rule, message, help);
  return row;
}

function select(finding) {
  const start = offset(finding.location);
  program.focus();
  program.setSelectionRange(start, offset(finding.end_location));
}

/** Where a place stands in the text; columns are counted in characters, as Python counts them. */
function offset({ row, column }) {
  const lines = program.value.split("\n");
  const before = lines.slice(0, row - 1).reduce((sum, each) => sum + each.length + 1, 0);
  return before + [...(lines[row - 1] ?? "")].slice(0, column - 1).join("").length;
}

/** The numbers of the lines; those with a finding stand out. */
function number(findings = []) {
  const worst = new Map();
  for (const finding of [...findings].reverse()) {
    worst.set(finding.location.row, finding.severity);
  }
  const rows = program.value.split("\n").map((_, index) => {
    const row = document.createElement("span");
    row.textContent = index + 1;
    row.className = worst.get(index + 1) ?? "";
    return row;
  });
  place("lines").replaceChildren(...rows.flatMap((row) => [row, "\n"]));
  place("lines").scrollTop = program.scrollTop;
}

/** The program in the address: as text that is compressed and written in the letters of URLs. */
async function packed(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const letters = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(letters) {
  const text = atob(letters.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).text();
}

async function read(examples) {
  const asks = new URLSearchParams(location.hash.slice(1));
  try {
    if (asks.has("program")) {
      return await unpacked(asks.get("program"));
    }
  } catch {
    say("The program in this link cannot be read.");
  }
  const wanted = examples.find((each) => each.code === asks.get("rule")) ?? examples[0];
  place("example").value = wanted.code;
  return wanted.program;
}

async function begin() {
  const examples = await (await fetch(new URL("examples.json", here))).json();
  const options = examples.map((each) => new Option(`${each.code} ${each.name}`, each.code));
  place("example").append(...options);
  const open = async () => {
    program.value = await read(examples);
    check(0);
  };
  program.oninput = () => check(300);
  program.onscroll = () => (place("lines").scrollTop = program.scrollTop);
  place("example").onchange = ({ target }) => {
    if (target.value !== "") {
      location.hash = `rule=${target.value}`;
    }
  };
  place("fix").onclick = () => {
    program.value = mended;
    check(0);
  };
  place("share").onclick = async () => {
    history.replaceState(null, "", `#program=${await packed(program.value)}`);
    await navigator.clipboard?.writeText(location.href).catch(() => undefined);
    say("The address of this page holds the program; it was copied.");
  };
  window.onhashchange = open;
  await open();
}

begin();
