import { join } from "node:path";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { buildExecutable } from "../../../scripts/build.ts";

export const COMMIT = "0123456789ab";

/** The path of an executable that is built once for all test files. */
export const BUILT_EXECUTABLE = join(temporaryDirectory("executable"), "petstore");
await buildExecutable(BUILT_EXECUTABLE, COMMIT);
