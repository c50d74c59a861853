import { accessSync, constants } from "node:fs";
import { type Flags, sourceOf, type Variables } from "../config/parse-options.ts";
import { systemErrorField, systemErrorReason } from "../runtime/system-error.ts";
import { type Command, Failure } from "./command.ts";

/** Returns the settings of the service that a package has installed with this executable, as deploy/packages does. */
export function serviceFileOf(executable: string): string | undefined {
  return executable === "/usr/bin/petstore" ? "/etc/petstore/production.env" : undefined;
}

/** With any of these flags or their variables, a command works on the data here. */
export const DATA_FLAGS = ["data", "database-url", "database-url-file"];

/** Adds --env-file with the file of the service, unless something else says which data a command is about. */
export function withServiceFile(
  file: string | undefined,
  { data, options }: Pick<Command, "data" | "options">,
  { flags, variables }: { readonly flags: Flags; readonly variables: Variables },
): Flags {
  const named = [...DATA_FLAGS, "env-file", ...("server" in options ? ["server"] : [])];
  if (file === undefined || data === "nothing" || named.some((flag) => sourceOf(flag, flags, variables)))
    return flags;
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    if (systemErrorField(error, "code") === "ENOENT") return flags;
    throw new Failure(
      `${file} has the settings of the service, and cannot be read: ${systemErrorReason(error) ?? String(error)}; run the command as root or as the user petstore, or name other data with --data or --database-url`,
    );
  }
  return { ...flags, "env-file": [file] };
}
