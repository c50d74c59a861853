import { join } from "node:path";
import { temporaryFolder } from "../../../trials/harness/cleanup.ts";
import { buildExecutable } from "../../../scripts/build.ts";

export const COMMIT = "0123456789ab";

/** The path of an executable that is built once for all test files. */
export const BUILT_EXECUTABLE = join(temporaryFolder("executable"), "petstore");
await buildExecutable(BUILT_EXECUTABLE, COMMIT);
