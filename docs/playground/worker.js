// Python in the browser, with gradlint in it, beside the page so that a long check does not hold that up.
const here = import.meta.url;

const ready = (async () => {
  const { pyodide: address } = await (await fetch(new URL("config.json", here))).json();
  const base = new URL(address, here).href;
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  const python = await loadPyodide({ indexURL: base });
  const [archive, source] = await Promise.all([
    fetch(new URL("gradlint.zip", here)).then((answer) => answer.arrayBuffer()),
    fetch(new URL("check.py", here)).then((answer) => answer.text()),
  ]);
  python.unpackArchive(archive, "zip", { extractDir: "/gradlint" });
  await python.loadPackage("libcst", { messageCallback: () => {}, errorCallback: () => {} }).catch(() => undefined);
  python.runPython(source);
  return python.globals.get("check");
})();

onmessage = async ({ data }) => {
  try {
    const check = await ready;
    postMessage({ number: data.number, found: JSON.parse(check(data.text)) });
  } catch (error) {
    postMessage({ failed: String(error).slice(-300) });
  }
};
