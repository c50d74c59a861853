import { chmodSync, chownSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Charge } from "./watchdog.ts";

function startWatchdog() {
  // In a session of its own: what interrupts the tests from a terminal must not interrupt their cleaning up.
  const dog = Bun.spawn([process.execPath, join(import.meta.dir, "watchdog.ts")], {
    stdio: ["pipe", "ignore", "inherit"],
    detached: true,
  });
  dog.unref();
  return dog.stdin;
}

let watchdog: ReturnType<typeof startWatchdog> | undefined;

/** Has something cleared away when this process ends, however it ends. */
export function charge(charge: Charge): void {
  watchdog ??= startWatchdog();
  watchdog.write(`${JSON.stringify(charge)}\n`);
  void watchdog.flush();
}

/** A folder that is removed when the tests end. */
export function chargedFolder(name: string, owner?: { uid: number; gid: number }): string {
  const folder = mkdtempSync(join(tmpdir(), `petstore-${name}-`));
  charge({ folder });
  chmodSync(folder, 0o700);
  if (owner) chownSync(folder, owner.uid, owner.gid);
  return folder;
}
