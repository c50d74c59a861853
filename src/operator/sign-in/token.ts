import { resolve } from "node:path";
import { sha256 } from "../../runtime/hash.ts";
import { parseValue } from "../../config/parse-options.ts";
import { adminToken } from "../../config/value-types.ts";
import type { DataDirectory } from "../../data-directory.ts";
import { readOwnFile, replaceFile } from "../../runtime/own-files.ts";
import { type NewSecret, randomBase62, SECRET_PREFIX } from "../../domain/secrets.ts";
import type { OperatorStore } from "../../domain/ports/operators.ts";
import type { Clock } from "../../domain/ports/clock.ts";
import { byServer } from "../../background/attribution.ts";
import type { Log } from "../../observe/log.ts";

/** Tokens of release 1.1.0 are base64url, with `-` and `_`. */
const GENERATED = new RegExp(`^${SECRET_PREFIX.admin}[\\w-]{43}$`);

/** Generates a token of 256 random bits. */
export function generateToken(): string {
  return SECRET_PREFIX.admin + randomBase62(43);
}

/**
 * The stored form of a token. The hint leaves 208 of the 256 bits unknown; it shows nothing of a token made by hand.
 */
export function toNewToken(token: string): NewSecret {
  const hint = GENERATED.test(token) ? `${token.slice(0, 14)}…${token.slice(-4)}` : "made by hand";
  return { hash: sha256(token), hint };
}

export interface OpenFirstTokenOptions {
  readonly directory: DataDirectory;
  readonly operators: OperatorStore;
  readonly clock: Pick<Clock, "now">;
  readonly log: Log;
}

/**
 * Creates the operator `admin` at the first start, with a token in the data directory. Returns the file if its token
 * works. A replaced token, or that of a revoked operator, stays invalid.
 */
export async function openFirstToken(options: OpenFirstTokenOptions): Promise<string | undefined> {
  const { directory, operators, clock, log } = options;
  const file = resolve(directory.files.adminToken);
  const saved = readOwnFile(file);
  const token = saved === undefined ? generateToken() : parseValue(file, saved.trim(), adminToken);
  const secret = toNewToken(token);
  const admin = { name: "admin", role: "admin" } as const;
  const first = await operators.createFirstOperator(admin, secret, byServer(clock));
  if (saved !== undefined) {
    if (first || (await operators.readAccess()).tokens.has(secret.hash)) return file;
    log.event("admin.token-outdated", { file });
    return undefined;
  }
  if (first === undefined) return undefined;
  try {
    replaceFile(file, `${token}\n`);
    return file;
  } catch (error) {
    // Whoever can use the command line can still sign in and create operators.
    log.event("admin.token-not-saved", { error });
    return undefined;
  }
}
