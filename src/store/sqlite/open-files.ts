import { dirname } from "node:path";
import { makeDirectory, statDirectory, statOf, withoutLinks } from "../../runtime/own-files.ts";
import { Unavailable } from "../../api/errors.ts";
import { type ScheduledTimer, scheduler } from "../../runtime/scheduler.ts";
import { FailureReporter } from "../../runtime/failure-reporter.ts";
import type { Connection } from "./connection.ts";
import { createDatabaseFile } from "./database-file.ts";
import { publishDatabase, removeDatabase, removeLog } from "./durable-files.ts";

const CHECK_EVERY_MS = 500;
const SETTLED_MS = 1_000;

export interface RescueOptions {
  /** The file that the data is copied to. */
  readonly to: string;
  /** Called after a rescue. It can call `watch` again with a connection to the rescued files. */
  readonly onRescue: () => void;
  /** Called after the first failure. Later attempts follow. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * Watches the files of an open database. If they are deleted or replaced, whatever SQLite commits to them is lost in
 * the end.
 */
export class OpenFiles {
  /** The identities of the database and its log when they were opened. */
  #identities: readonly string[] = [];
  #rescue = (): void => {};
  #timer: ScheduledTimer | undefined;
  /** The state of the directory in which the files were found last. */
  #checkedNames: string | undefined;

  constructor(private readonly path: string) {}

  /**
   * Begins to watch the files of a connection. Within a second after they are lost, the rescue copies what the
   * connection has.
   */
  watch(connection: Connection, rescue: RescueOptions | undefined): void {
    this.#identities = this.#current();
    this.#checkedNames = undefined;
    if (rescue === undefined) return;
    const failures = new FailureReporter(rescue.onFailure);
    this.#rescue = () => {
      if (!this.#areLost()) return;
      try {
        copyDurably(connection, rescue.to);
        // This log would damage a database that has replaced this one.
        if (this.#current()[1] === this.#identities[1]) removeLog(this.path);
        const once = this.#rescue;
        rescue.onRescue();
        if (this.#rescue === once) this.#rescue = () => {};
      } catch (error) {
        failures.failed(error);
      }
    };
    this.#timer ??= scheduler.setInterval(this.rescueIfLost, CHECK_EVERY_MS);
    this.#timer.unref();
  }

  readonly rescueIfLost = (): void => this.#rescue();

  /** Throws if the files are lost. It is called before each commit, so it looks at the directory alone if it can. */
  readonly check = (): void => {
    const names = this.#namesNow();
    if (names !== undefined && names === this.#checkedNames) return;
    if (this.#areLost()) throw new Unavailable(`${this.path} was deleted or replaced`);
    this.#checkedNames = names;
  };

  /**
   * Identifies the state of the directory, which changes when a file in it gets or loses its name. Undefined if a
   * change can follow at the same time: the kernel's clock has steps of up to 10 ms.
   */
  #namesNow(): string | undefined {
    try {
      const { dev, ino, mtimeMs } = statDirectory(dirname(this.path));
      return Date.now() - mtimeMs < SETTLED_MS ? undefined : `${dev}:${ino}:${mtimeMs}`;
    } catch {
      return undefined;
    }
  }

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
      // The files are unreadable, for example without permission, so they count as unchanged.
      return this.#identities;
    }
  }
}

function identityOf(path: string): string {
  const stats = statOf(path);
  return `${stats?.dev}:${stats?.ino}`;
}

function copyDurably(connection: Connection, to: string): void {
  makeDirectory(dirname(to));
  const partial = `${to}.partial`;
  removeDatabase(partial);
  createDatabaseFile(partial);
  connection.value("VACUUM INTO ?", withoutLinks(partial));
  publishDatabase(partial, to);
}
