import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder for one test; `using` removes it. */
export function temporaryFolder(): Disposable & { path(name: string): string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), "petstore-store-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  return { path: (name) => join(folder, name), remove, [Symbol.dispose]: remove };
}
