import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "../..");
const DIRECTORIES = [".github", "bench", "deploy", "docs", "scripts", "src", "test", "trials"];
/** Files at the root, without git: whatever else is there is somebody's own. */
const FILE_AT_ROOT = /^(?:[A-Z_]+\.md|package\.json|tsconfig\.json|\.oxlintrc\.json)$/;

/** The paths of the project's files, from the root: those that git tracks. Without git, those in its directories. */
export function projectFiles(): string[] {
  const { exitCode, stdout } = Bun.spawnSync(["git", "ls-files", "-z"], { cwd: ROOT, stderr: "ignore" });
  if (exitCode !== 0 || !existsSync(join(ROOT, ".git"))) return filesWithoutGit();
  const tracked = stdout.toString().split("\0");
  return tracked.filter((path) => path !== "" && existsSync(join(ROOT, path)));
}

function filesWithoutGit(): string[] {
  const atRoot = readdirSync(ROOT).filter((name) => FILE_AT_ROOT.test(name));
  return [...atRoot, ...DIRECTORIES.flatMap(filesUnder)];
}

function filesUnder(directory: string): string[] {
  if (!existsSync(join(ROOT, directory))) return [];
  return readdirSync(join(ROOT, directory), { withFileTypes: true }).flatMap((entry) => {
    if (entry.name === "node_modules" || entry.name.startsWith(".")) return [];
    const path = `${directory}/${entry.name}`;
    return entry.isDirectory() ? filesUnder(path) : [path];
  });
}

/** The text of a file with empty strings. Comments and lines stay. */
export const withoutStrings = (text: string) =>
  text.replace(
    /\/\*[\s\S]*?\*\/|\/\/.*$|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\[\s\S])*`/gm,
    (token) => (token.startsWith("/") ? token : token.replace(/[^\n]/g, "")),
  );
