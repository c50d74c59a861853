import { join } from "node:path";
import { buildExecutable } from "./build.ts";
import { temporaryDirectory } from "../trials/harness/cleanup.ts";
import { EXECUTABLE_VARIABLE } from "../trials/harness/petstore.ts";

/** The commit that the executable names. */
export const COMMIT = "0123456789ab";

let built: Promise<string> | undefined;

/** The path of an executable that is built once for all test files. */
export async function builtExecutable(): Promise<string> {
  return process.env[EXECUTABLE_VARIABLE] ?? (built ??= build());
}

async function build(): Promise<string> {
  const path = join(temporaryDirectory("executable"), "petstore");
  await buildExecutable(path, COMMIT);
  return path;
}
