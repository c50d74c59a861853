/** Why an import does not begin, and what to do. */
import { statSync } from "node:fs";
import { printable, quotedPath } from "../config/usage-error.ts";
import { grouped } from "../contract/formatting.ts";
import type { ImportProgress, ImportRecord } from "../domain/data-transfer.ts";
import { Failure } from "./command.ts";

export function nameOf(path: string): string {
  return path === "-" ? "standard input" : printable(path);
}

export function fileChanged(name: string, { progress }: ImportRecord): Failure {
  return new Failure(
    `${name} has changed since ${grouped(progress.rows)} rows of it were imported; import the earlier file to the end, or add --again to import this one from its beginning`,
  );
}

/** Where the next rejected row is written; `progress` is that of an import that continues. */
export function rejectsPosition(path: string, progress?: ImportProgress): number | Failure {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return 0;
  const rejects = quotedPath(path);
  if (!stats.isFile()) {
    return new Failure(`${rejects} is not a regular file; choose another one with --rejects`);
  }
  if (progress === undefined) {
    return new Failure(
      `${rejects} has the rejected rows of another import; move it away or choose another file with --rejects`,
    );
  }
  if (stats.size >= progress.rejectsBytes) return progress.rejectsBytes;
  return new Failure(
    `${rejects} has changed since the import stopped; move it away or choose another file with --rejects for the next rejected rows`,
  );
}

export function otherOptions(name: string, { options, progress }: ImportRecord): Failure {
  const earlier = options === "" ? "no such options" : options;
  return new Failure(
    `${grouped(progress.rows)} rows of ${name} were imported with other options (${earlier}); continue with those, or add --again to import it from its beginning`,
  );
}
