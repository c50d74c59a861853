import { chmodSync, copyFileSync, cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";

/** Earlier releases. `fixtures` has the program of each in one file, and databases that it made. */
export const EARLIER_RELEASES = {
  "1.3.0": { commit: "39a7ead3219ee21f4c24fb6022d9a71753f582e9" },
} as const;
export type EarlierRelease = keyof typeof EARLIER_RELEASES;

export const PREVIOUS_RELEASE = "1.3.0" satisfies EarlierRelease;

/** The directory with the fixtures of a release. */
export const fixturesOf = (release: EarlierRelease): string => join(import.meta.dir, "fixtures", release);
export const PROGRAM_FILE = "petstore.js.gz";

/** Keys of the fixtures, by name. */
export type KeyName = "shop" | "mobile" | "load" | "rolled" | "revoked" | "banned";

/** What the key `shop` has beside its plan. */
export const SHOP = { owner: "Ann Ray", notes: "Orders by telephone", label: "eu", access: "write" } as const;

/** What the previous release responded when the fixtures were made. */
export interface Recorded {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly secrets: Readonly<Record<KeyName, string>>;
  /** The secret that `rolled` had before; it is valid for 30 days. */
  readonly previousSecret: string;
  readonly responses: readonly { readonly key: KeyName; readonly path: string; readonly body: string }[];
  readonly statuses: Readonly<Record<KeyName, number>>;
  readonly idempotent: {
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
    readonly response: string;
  };
  /** X-RateLimit-Remaining of the last request of `mobile`. */
  readonly remaining: number;
}

export function readRecorded(engine: "sqlite" | "postgres", release: EarlierRelease): Recorded {
  return JSON.parse(readFileSync(join(fixturesOf(release), `${engine}.json`), "utf8"));
}

/** The command that runs an earlier release. */
export function earlierProgram(release: EarlierRelease): readonly string[] {
  const path = join(temporaryDirectory("earlier-release"), "petstore.js");
  writeFileSync(path, gunzipSync(readFileSync(join(fixturesOf(release), PROGRAM_FILE))));
  return [process.execPath, "--no-env-file", "--config=/dev/null", path];
}

/** A data directory with the SQLite databases that an earlier release made. */
export function fixtureData(release: EarlierRelease): string {
  const directory = temporaryDirectory("earlier-data");
  for (const name of ["production.db", "production-limits.db"]) {
    copyFileSync(join(fixturesOf(release), name), join(directory, name));
    chmodSync(join(directory, name), 0o600);
  }
  return directory;
}

/** A directory with a backup that an earlier release made of those databases. */
export function fixtureBackups(release: EarlierRelease): string {
  const directory = temporaryDirectory("earlier-backups");
  cpSync(join(fixturesOf(release), "backups"), directory, { recursive: true });
  return directory;
}

/** The statements that make the PostgreSQL schema of an earlier release. */
export function fixtureSql(release: EarlierRelease): string {
  return readFileSync(join(fixturesOf(release), "postgres.sql"), "utf8");
}
