import { readFileSync } from "node:fs";
import { systemErrorField, systemErrorReason } from "../runtime/system-error.ts";
import { quotedPath } from "./quoted.ts";
import { UsageError } from "./usage-error.ts";

/** Reads a file that an option names. `name` is the flag or the variable. */
export function readTextFile(name: string, path: string): string {
  try {
    return readFileSync(path, "utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    const isMissing = systemErrorField(error, "code") === "ENOENT";
    const reason = isMissing ? "the file does not exist" : (systemErrorReason(error) ?? String(error));
    throw new UsageError(`${name} is ${quotedPath(path)}; it cannot be read: ${reason}`);
  }
}
