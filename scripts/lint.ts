/* Lints the project's files, and nobody's own. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectFiles, withoutStrings } from "../trials/harness/project-files.ts";

const ROOT = join(import.meta.dir, "..");
const MAX_COLUMNS = 120;

const code = projectFiles().filter((path) => /\.(?:tsx?|js)$/.test(path));
const oxlint = join(ROOT, "node_modules/.bin/oxlint");
const stdio = ["ignore", "inherit", "inherit"] as const;
const { exitCode } = Bun.spawnSync([oxlint, "--deny-warnings", ...code], { cwd: ROOT, stdio: [...stdio] });
// A string may be as long as what it says.
const long = code.flatMap((path) =>
  withoutStrings(readFileSync(join(ROOT, path), "utf8"))
    .split("\n")
    .flatMap((line, i) => (line.length > MAX_COLUMNS ? [`${path}:${i + 1}: ${line.trim()}\n`] : [])),
);
if (long.length > 0)
  process.stderr.write(`longer than ${MAX_COLUMNS} characters, strings aside:\n${long.join("")}`);
process.exit(exitCode === 0 && long.length === 0 ? 0 : 1);
