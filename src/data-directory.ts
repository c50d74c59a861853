import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Environment } from "./domain/environments.ts";
import { isSameTimeline, laterOf, parseTimeline, type Timeline, timelineText } from "./domain/timeline.ts";
import { scheduler } from "./runtime/scheduler.ts";
import {
  makeDirectory,
  makePrivate,
  OTHER_USERS,
  readOwnFile,
  removeFile,
  replaceFile,
  statOf,
} from "./runtime/own-files.ts";
import type { LatestTimeline } from "./store/postgres/primary.ts";

interface DataDirectoryOptions {
  readonly path: string;
  readonly environment: Environment;
  /** Whether a database may be created although other files show that there was one. */
  readonly allowsNewDatabase?: boolean | undefined;
}

/** The directory with the files of an environment, which need not exist yet. */
export class DataDirectory {
  readonly path: string;
  readonly environment: Environment;
  readonly files: ReturnType<typeof filesOf>;
  readonly #allowsNewDatabase: boolean;

  constructor({ path, environment, allowsNewDatabase = false }: DataDirectoryOptions) {
    this.path = path;
    this.environment = environment;
    this.files = filesOf(join(path, environment));
    this.#allowsNewDatabase = allowsNewDatabase;
  }

  /** The name in messages, such as `./data (production)`. */
  get name(): string {
    return `${this.path} (${this.environment})`;
  }

  /** The databases, and the files of SQLite next to them. */
  get databaseFiles(): string[] {
    const { database, quotas } = this.files;
    return [database, quotas].flatMap((path) => [path, `${path}-wal`, `${path}-shm`]);
  }

  /**
   * Creates the directory if it is missing, and makes the files of earlier versions private: they hold the names and
   * hashes of keys, and whoever can read a file can lock it. Returns the files that were not private. This comes before
   * the lock, because closing a descriptor of its file would release it.
   */
  prepare(): readonly string[] {
    rejectUnwritable(existingParent(this.path));
    this.create();
    const { lock, adminToken, url } = this.files;
    return [...this.databaseFiles, lock, adminToken, url].filter(makePrivate);
  }

  create(): void {
    makeDirectory(this.path);
  }

  /**
   * Saves the URL of the listener for commands on this machine. Returns a function that removes it, unless another
   * server has replaced it since.
   */
  saveUrl(url: string): () => void {
    const { url: file } = this.files;
    const text = `${url}\n`;
    try {
      replaceFile(file, text);
    } catch {
      return () => {};
    }
    return () => {
      if (readOwnFile(file) === text) removeFile(file);
    };
  }

  /** Takes the lock of a server, or of a command that replaces databases. Undefined while another process has it. */
  async lock() {
    const { acquireLock } = await import("./store/sqlite/process-lock.ts");
    const { lock, database, quotas } = this.files;
    return acquireLock(lock, [database, quotas]);
  }

  /** Whether there is a SQLite database. Throws if this user may not see it: otherwise, everything would look empty. */
  hasDatabase(): boolean {
    return statOf(this.files.database) !== undefined;
  }

  /** Returns the problem of a SQLite database that has disappeared, and what to do about it. */
  findLostDatabase() {
    const { database, rescued, quotas, adminToken } = this.files;
    if (existsSync(rescued)) {
      return {
        message: `${database} was deleted or replaced while a server used it; the server saved everything to ${rescued}`,
        remedy: `run rm -f ${database}* && mv ${rescued} ${database} to go on with it, or move it away`,
        isRescued: true,
      };
    }
    // SQLite deletes the log of a database that does not exist.
    const names = existsSync(this.path) && !statOf(database)?.size ? readdirSync(this.path) : [];
    const replaced = join(this.path, `${this.environment}-replaced-`);
    const left = names
      .map((name) => join(this.path, name))
      .filter((path) => path === quotas || path === adminToken || path.startsWith(replaced));
    if (left.length === 0) return undefined;
    return {
      message: `${database} is missing or empty, but there was a database: see ${left.join(", ")}`,
      remedy: "restore a backup with petstore restore, or run petstore serve --new-database to begin anew",
      isRescued: false,
    };
  }

  /** Keeps a server from creating an empty database in the place of the lost one. */
  rejectLostDatabase(): void {
    const lost = this.findLostDatabase();
    if (lost === undefined || (this.#allowsNewDatabase && !lost.isRescued)) return;
    throw new Error(`${lost.message}; ${lost.remedy}`);
  }

  /** Returns the free space for this user on the disk of the directory, or of the one in which it will be created. */
  freeBytes(): number {
    const { bavail, bsize } = statfsSync(existingParent(this.path));
    return bavail * bsize;
  }

  /** Returns the mode of a directory that is open to others, who can see its files or even replace them. */
  modeIfOpenToOthers(): string | undefined {
    const mode = (statSync(this.path, { throwIfNoEntry: false })?.mode ?? 0) & 0o777;
    return (mode & OTHER_USERS) === 0 ? undefined : mode.toString(8).padStart(4, "0");
  }

  /** Saving it creates no directory. */
  get latestTimeline(): LatestTimeline {
    const { timeline: file, timelineLock } = this.files;
    const read = () => parseTimeline(readOwnFile(file) ?? "");
    /** Stores what `choose` makes of the stored timeline, which no other process replaces meanwhile. */
    const change = async (choose: (stored: Timeline) => Timeline) => {
      const stored = read();
      if (!existsSync(this.path) || isSameTimeline(choose(stored), stored)) return choose(stored);
      using _ = await waitForLock(timelineLock);
      const latest = choose(read());
      replaceFile(file, `${timelineText(latest)}\n`);
      return latest;
    };
    return {
      raise: (timeline) => change((stored) => laterOf(stored, timeline)),
      replace: async (timeline) => void (await change(() => timeline)),
    };
  }
}

/** Returns the paths of the files, which begin with the directory and the environment. */
function filesOf(path: string) {
  return {
    database: `${path}.db`,
    /** The data that a server saved when its database was deleted or replaced. */
    rescued: `${path}-rescued.db`,
    quotas: `${path}-limits.db`,
    lock: `${path}.lock`,
    firstKey: `${path}-first-key`,
    adminToken: `${path}-admin-token`,
    url: `${path}-url`,
    /** The latest timeline of PostgreSQL that a process with this directory has seen. */
    timeline: `${path}-timeline`,
    timelineLock: `${path}-timeline.lock`,
    /** The copy of a backup until it takes the place of the database. */
    restoredCopy: `${path}.db.restored`,
  } as const;
}

/** How long to wait for a process that reads and writes a few bytes. */
const LOCK_TIMEOUT_MS = 5_000;

async function waitForLock(path: string): Promise<Disposable> {
  const { acquireLock } = await import("./store/sqlite/process-lock.ts");
  const deadline = scheduler.now() + LOCK_TIMEOUT_MS;
  for (;;) {
    const lock = acquireLock(path);
    if (lock !== undefined) return lock;
    if (scheduler.now() > deadline) throw new Error(`another process holds ${path}`);
    await scheduler.sleep(2 + 8 * scheduler.random());
  }
}

/** Returns the problem of a directory and what to do, for a server and petstore doctor. */
export function notWritable(path: string): readonly [problem: string, remedy: string] {
  return [
    `${path} is not writable for the user who runs this command`,
    `run the command as the user of the server, or give the directory to that user: chown -R USER ${path}`,
  ];
}

/** Returns the directory, or the one in which it will be created. */
export function existingParent(path: string): string {
  return existsSync(path) ? path : existingParent(dirname(resolve(path)));
}

/** Other errors, such as a read-only file system, are reported by the first write. */
export function rejectUnwritable(path: string, access = accessSync): void {
  let code: unknown;
  try {
    access(`${path}/.`, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    code = Reflect.get(Object(error), "code");
  }
  if (code === "EACCES") throw new Error(notWritable(path).join("; "));
}
