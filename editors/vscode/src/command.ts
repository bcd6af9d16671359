// Which gradlint is started, and with what: all that does not need an editor.
import * as path from "node:path";

export interface Place {
  folder: string | undefined; // that is open
  setting: string; // gradlint.path
  interpreter: string | undefined; // of the Python extension
  windows: boolean;
  exists: (file: string) => boolean;
}

/** The command: as set, of the folder's environment, beside the interpreter, or from the PATH. */
export function command(place: Place): string {
  const paths = place.windows ? path.win32 : path.posix;
  const name = place.windows ? "gradlint.exe" : "gradlint";
  const commands = place.windows ? "Scripts" : "bin";
  if (place.setting !== "") {
    const named = /[\\/]/.test(place.setting);
    return named && place.folder !== undefined ? paths.resolve(place.folder, place.setting) : place.setting;
  }
  const candidates: string[] = [];
  if (place.folder !== undefined) {
    for (const environment of [".venv", "venv"]) {
      candidates.push(paths.join(place.folder, environment, commands, name));
    }
  }
  if (place.interpreter !== undefined) {
    candidates.push(paths.join(paths.dirname(place.interpreter), name));
  }
  return candidates.find(place.exists) ?? "gradlint";
}

/** The words of a traced run: the script's own behind it, so that none of them is taken for one of ours. */
export function traceWords(script: string, page: string, steps: number, words: readonly string[]): string[] {
  const bound = steps > 0 ? [`--steps=${steps}`] : [];
  return ["trace", `--html=${page}`, ...bound, script, ...words];
}

export interface Rule {
  code: string;
  name: string;
  severity: string;
  summary: string;
  explanation: string;
}

/** The rules, as `gradlint rule --output-format json` tells of them. */
export function rules(told: string): Rule[] {
  const found: unknown = JSON.parse(told);
  if (!Array.isArray(found)) {
    throw new Error("gradlint told of no list of rules");
  }
  return found as Rule[];
}

/** The code of a diagnostic of ours, whose form is the protocol's: a word, or a word with a link. */
export function codeOf(source: string | undefined, code: unknown): string | undefined {
  if (source !== "gradlint") {
    return undefined;
  }
  const value = typeof code === "object" && code !== null && "value" in code ? code.value : code;
  return typeof value === "string" ? value : undefined;
}
