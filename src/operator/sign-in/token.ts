import { MINUTE_MS } from "../../text/time-units.ts";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { Rejection } from "../../api/errors.ts";
import { sha256 } from "../../runtime/hash.ts";
import { adminToken } from "../../config/value-types.ts";
import type { DataDirectory } from "../../data-directory.ts";
import { readOwnFile, replaceFile } from "../../runtime/own-files.ts";
import { type NewSecret, randomBase62, SECRET_PREFIX } from "../../domain/secrets.ts";
import { mayCall, operatorState } from "../../domain/operators.ts";
import type { OperatorStore } from "../../domain/ports/operators.ts";
import type { Clock } from "../../domain/ports/clock.ts";
import { byServer } from "../../observe/attribution.ts";
import type { Log } from "../../observe/log.ts";
import { forbiddenRole } from "../errors.ts";

/** Tokens of release 1.1.0 are base64url, with `-` and `_`. */
const GENERATED = new RegExp(`^${SECRET_PREFIX.admin}[\\w-]{43}$`);

/** Generates a token of 256 random bits. */
export function generateToken(): string {
  return SECRET_PREFIX.admin + randomBase62(43);
}

/**
 * The stored form of a token. The hint leaves 210 of the 258 bits unknown; it shows nothing of a token made by hand.
 */
export function toNewToken(token: string): NewSecret {
  const hint = GENERATED.test(token) ? `${token.slice(0, 14)}…${token.slice(-4)}` : "made by hand";
  return { hash: sha256(token), hint };
}

/** Reads a token. Throws if the file cannot be read or does not contain a token. */
export function readTokenFile(path: string): string {
  return tokenIn(readFileSync(path, "utf8"), path);
}

function tokenIn(text: string, path: string): string {
  const token = adminToken.parse(text.trim());
  if (token === undefined) throw new Error(`${path} does not contain an admin token: ${adminToken.expected}`);
  return token;
}

interface OpenFirstTokenOptions {
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
  const token = saved === undefined ? generateToken() : tokenIn(saved, file);
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

export const CODE_MS = 5 * MINUTE_MS;

/** Generates a code for the command line, which recognizes it by its beginning. */
export function generateCode(): string {
  return SECRET_PREFIX.code + randomBase62(43);
}

interface SignInUrlOptions {
  readonly url: string;
  readonly operators: OperatorStore;
  readonly clock: Pick<Clock, "now">;
  /** The operator to sign in; by default the first admin. */
  readonly operator?: string | undefined;
  /** The command that makes the URL, and its user, for the audit trail: `admin-url (root)`. */
  readonly madeBy: string;
}

/** Creates a URL that signs in whoever opens it first, within five minutes. */
export async function createSignInUrl(
  options: SignInUrlOptions,
): Promise<string | Rejection<"operator_not_found" | "forbidden_role">> {
  const { url, operators, clock, operator: name, madeBy } = options;
  const now = clock.now();
  const active = (await operators.listOperators()).filter((each) => operatorState(each, now) === "active");
  const operator = active.find((each) => (name === undefined ? each.role === "admin" : each.name === name));
  if (operator === undefined)
    return new Rejection(
      "operator_not_found",
      `${name === undefined ? "An operator with the role admin" : `Operator ${name}`} does not exist, is revoked or has expired.`,
    );
  if (!mayCall(operator.role, "viewer")) return forbiddenRole(operator, "viewer");
  // The code has no punctuation, which terminals would leave out of a link.
  const code = randomBytes(20).toString("hex");
  const stored = { codeHash: sha256(code), operatorId: operator.id, endsAt: now + CODE_MS, madeBy };
  await operators.createCode(stored, now);
  return `${url}/?code=${code}`;
}
