/* Formats the project's files, and nobody's own. With --check it writes nothing. */

import { join } from "node:path";
import { projectFiles } from "../trials/harness/project-files.ts";

const files = projectFiles().filter((path) => /\.(?:[cm]?[jt]sx?|css|html|json|ya?ml)$/.test(path));
const { exitCode } = Bun.spawnSync(
  [process.execPath, "fmt", "--no-script", ...process.argv.slice(2), ...files],
  { cwd: join(import.meta.dir, ".."), stdio: ["ignore", "inherit", "inherit"] },
);
process.exit(exitCode);
