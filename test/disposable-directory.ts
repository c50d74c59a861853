import { rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../trials/harness/cleanup.ts";

/** A directory for one test or service. `using` removes it; the end of the process does if the test fails before. */
export function disposableDirectory() {
  const directory = temporaryDirectory("test");
  const remove = () => rmSync(directory, { recursive: true, force: true });
  const path = (name: string) => join(directory, name);
  return { directory, path, remove, [Symbol.dispose]: remove };
}
