import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { Unavailable } from "../../api/errors.ts";
import { Latch } from "../../api/latch.ts";
import { type ScheduledTimer, scheduler } from "../../event-loop.ts";
import { type Connection, createPrivateFile } from "./connection.ts";
import { publishDatabase, removeDatabase, removeLog } from "./durable-files.ts";

const CHECK_EVERY_MS = 500;

export interface RescueOptions {
  /** The file that gets the data. */
  readonly to: string;
  readonly onRescue: () => void;
  /** Called once. The rescue is tried again. */
  readonly onFailure: (error: unknown) => void;
}

/** The files of an open database. What SQLite commits to files that were deleted or replaced is gone in the end. */
export class OpenFiles {
  /** Of the database and its log, when they were opened. */
  #identities: readonly string[] = [];
  #rescue = (): void => {};
  #timer: ScheduledTimer | undefined;

  constructor(private readonly path: string) {}

  /** Call it with the first connection. The rescue copies what it has, within a second after its files are lost. */
  watch(connection: Connection, rescue: RescueOptions | undefined): void {
    this.#identities = this.#current();
    if (rescue === undefined) return;
    const latch = new Latch(rescue.onFailure);
    this.#rescue = () => {
      if (!this.#areLost()) return;
      try {
        copyDurably(connection, rescue.to);
        // It would damage a database that has replaced this one.
        if (this.#current()[1] === this.#identities[1]) removeLog(this.path);
        this.#rescue = () => {};
        rescue.onRescue();
      } catch (error) {
        latch.failed(error);
      }
    };
    this.#timer = scheduler.setInterval(() => this.#rescue(), CHECK_EVERY_MS);
    this.#timer.unref();
  }

  /** Called before each commit; takes 7 µs. */
  readonly check = (): void => {
    if (this.#areLost()) throw new Unavailable(`${this.path} was deleted or replaced`);
  };

  stop(): void {
    this.#timer?.close();
    this.#rescue();
  }

  #areLost(): boolean {
    const now = this.#current();
    return this.#identities.some((identity, i) => identity !== now[i]);
  }

  #current(): readonly string[] {
    try {
      return [this.path, `${this.path}-wal`].map(identityOf);
    } catch {
      // Nobody can tell, for example without permission.
      return this.#identities;
    }
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
