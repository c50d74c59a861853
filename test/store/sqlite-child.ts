import { writeSync } from "node:fs";
import { Unavailable } from "../../src/api/errors.ts";
import { createClock } from "../../src/clock.ts";
import { RetentionClock } from "../../src/store/retention-clock.ts";
import { acquireLock } from "../../src/store/sqlite/process-lock.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { BY, storedSecret } from "../key-store-arguments.ts";

/** A task of the SQLite tests in a process of its own: `bun sqlite-child.ts TASK PATH`. */
const [task = "", path = ""] = process.argv.slice(2);
const print = (line: string) => writeSync(1, `${line}\n`);

async function open(): Promise<void> {
  print("ready");
  await Bun.stdin.stream().getReader().read();
  const { keys, close } = openSqlite(path);
  await keys.createKey({ name: "child", plan: "free", createdAt: 0 }, storedSecret(process.pid), BY);
  await close();
}

/** Opens the store, creates a key, corrects the first pet and closes it, as commands do, twenty times. */
async function command(): Promise<void> {
  for (let n = 1; n <= 20; n++) {
    const { keys, operatorPetStore, close } = openSqlite(path, { maxBusyMs: 30_000 });
    await untilUnlocked(() =>
      keys.createKey({ name: "child", plan: "free", createdAt: 0 }, storedSecret(n), BY),
    );
    await operatorPetStore.updatePet(1n, { name: `name ${n}` }, BY);
    await close();
  }
}

/** Operators wait for five seconds, which a busy machine may need. */
async function untilUnlocked(work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await work();
      return;
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
    }
  }
}

async function lock(): Promise<void> {
  print(acquireLock(path) === undefined ? "rejected" : "locked");
  await Bun.stdin.stream().getReader().read();
}

/** Opens what watches a database, and closes nothing. */
async function leave(): Promise<void> {
  const rescue = { to: `${path}-rescued`, onRescue() {}, onFailure() {} };
  const { storedValues } = openSqlite(path, { rescue });
  const retention = new RetentionClock(
    createClock(),
    () => {},
    () => {},
  );
  await retention.start(storedValues);
}

const tasks: Record<string, () => Promise<void>> = { open, command, lock, leave };
await tasks[task]?.();
