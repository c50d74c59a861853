/** Why an import does not begin, and what to do. */
import { printable, quotedPath } from "../config/usage-error.ts";
import { grouped } from "../contract/formatting.ts";
import type { ImportRecord } from "../domain/data-transfer.ts";
import { Failure } from "./command.ts";

export function nameOf(path: string): string {
  return path === "-" ? "standard input" : printable(path);
}

export function fileChanged(name: string, { progress }: ImportRecord): Failure {
  return new Failure(
    `${name} has changed since ${grouped(progress.rows)} rows of it were imported; import the earlier file to the end, or add --again to import this one from its beginning`,
  );
}

export function rejectsExist(path: string): Failure {
  return new Failure(
    `${quotedPath(path)} has the rejected rows of another import; move it away or choose another file with --rejects`,
  );
}

export function rejectsChanged(path: string): Failure {
  return new Failure(
    `${quotedPath(path)} has changed since the import stopped; move it away or choose another file with --rejects for the next rejected rows`,
  );
}

export function otherOptions(name: string, { options, progress }: ImportRecord): Failure {
  const earlier = options === "" ? "no such options" : options;
  return new Failure(
    `${grouped(progress.rows)} rows of ${name} were imported with other options (${earlier}); continue with those, or add --again to import it from its beginning`,
  );
}
