import { join } from "node:path";
import { temporaryFolder } from "../../../trials/harness/cleanup.ts";
import { buildExecutable } from "../../../scripts/build.ts";

export const COMMIT = "0123456789ab";

let built: Promise<string> | undefined;

/** The path of an executable that is built once for all test files. */
export function builtExecutable(): Promise<string> {
  built ??= build();
  return built;
}

async function build(): Promise<string> {
  const outfile = join(temporaryFolder("executable"), "petstore");
  await buildExecutable(outfile, COMMIT);
  return outfile;
}
