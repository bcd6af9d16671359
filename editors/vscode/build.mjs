// Bundles the extension, and its tests, into dist/.
import { build } from "esbuild";

const common = {
  bundle: true,
  platform: "node",
  target: "node20",
  format: "cjs",
  external: ["vscode"],
  minify: process.argv.includes("--minify"),
  logLevel: "warning",
};
await build({ ...common, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js" });
await build({ ...common, entryPoints: ["test/unit.ts", "test/inside.ts"], outdir: "dist/test" });
