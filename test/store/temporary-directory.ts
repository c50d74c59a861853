import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A directory for one test; `using` removes it. */
export function temporaryDirectory(): Disposable & { path(name: string): string; remove(): void } {
  const directory = mkdtempSync(join(tmpdir(), "petstore-store-"));
  const remove = () => rmSync(directory, { recursive: true, force: true });
  return { path: (name) => join(directory, name), remove, [Symbol.dispose]: remove };
}
