import { mkdirSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { Unavailable } from "../../api/errors.ts";
import { Latch } from "../../api/latch.ts";
import { type ScheduledTimer, scheduler } from "../../event-loop.ts";
import { type Connection, createPrivateFile } from "./connection.ts";
import { publishDatabase, removeDatabase } from "./durable-files.ts";

const CHECK_EVERY_MS = 500;

export interface RescueOptions {
  /** The file that gets the data. */
  readonly to: string;
  readonly onRescue: () => void;
  /** Called once. The rescue is tried again. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * The files of an open database. SQLite goes on with files that were deleted or replaced, and what it commits is gone
 * when the process ends.
 */
export class OpenFiles {
  readonly #path: string;
  /** Of the database and its log; undefined until they are open. */
  #identities: readonly string[] | undefined;
  #isRescued = false;
  #rescue = (): void => {};
  #timer: ScheduledTimer | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Call it with the first connection. The rescue copies what it has, within a second after its files are lost. */
  watch(connection: Connection, rescue: RescueOptions | undefined): void {
    this.#identities = this.#current();
    if (rescue === undefined) return;
    const { to, onRescue, onFailure } = rescue;
    const latch = new Latch(onFailure);
    this.#rescue = () => {
      if (this.#isRescued || !this.#areLost()) return;
      try {
        copyDurably(connection, to);
        this.#removeLog();
        this.#isRescued = true;
        onRescue();
      } catch (error) {
        latch.failed(error);
      }
    };
    this.#timer = scheduler.setInterval(this.#rescue, CHECK_EVERY_MS);
    this.#timer.unref();
  }

  /** Called before each commit; takes 7 µs. */
  readonly check = (): void => {
    if (this.#areLost()) throw new Unavailable(`${this.#path} was deleted or replaced`);
  };

  stop(): void {
    this.#timer?.close();
    this.#rescue();
  }

  #areLost(): boolean {
    const now = this.#current();
    return this.#identities?.some((identity, i) => identity !== now?.[i]) ?? false;
  }

  #current(): readonly string[] | undefined {
    try {
      return [identityOf(this.#path), identityOf(`${this.#path}-wal`)];
    } catch {
      // Nobody can tell, for example without permission.
      return this.#identities;
    }
  }

  /** A database that has replaced this one would be damaged by the log of this one. */
  #removeLog(): void {
    if (this.#current()?.[1] !== this.#identities?.[1]) return;
    for (const suffix of ["-wal", "-shm"]) rmSync(this.#path + suffix, { force: true });
  }
}

function identityOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return `${stats?.dev}:${stats?.ino}`;
}

function copyDurably(connection: Connection, to: string): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  const partial = `${to}.partial`;
  removeDatabase(partial);
  createPrivateFile(partial);
  connection.value("VACUUM INTO ?", partial);
  publishDatabase(partial, to);
}
