import { chmodSync, copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";

/** The release before this one. `fixtures` has its program in one file, and databases that it made. */
export const PREVIOUS_RELEASE = {
  version: "1.1.0",
  commit: "05df6f1ea85005b475a2d32ee56b9976a5aa4603",
} as const;

export const FIXTURES = join(import.meta.dir, "fixtures");
export const PROGRAM_FILE = `petstore-${PREVIOUS_RELEASE.version}.js.gz`;

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

export function readRecorded(engine: "sqlite" | "postgres"): Recorded {
  return JSON.parse(readFileSync(join(FIXTURES, `${engine}.json`), "utf8"));
}

/** The command that runs the previous release. */
export function previousRelease(): readonly string[] {
  const path = join(temporaryDirectory("previous-release"), "petstore.js");
  writeFileSync(path, gunzipSync(readFileSync(join(FIXTURES, PROGRAM_FILE))));
  return [process.execPath, "--no-env-file", "--config=/dev/null", path];
}

/** A data directory with the SQLite databases that the previous release made. */
export function fixtureData(): string {
  const directory = temporaryDirectory("previous-data");
  for (const name of ["production.db", "production-limits.db"]) {
    copyFileSync(join(FIXTURES, name), join(directory, name));
    chmodSync(join(directory, name), 0o600);
  }
  return directory;
}
