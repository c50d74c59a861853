import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { Rejection } from "../api/errors.ts";
import { sha256 } from "../api/hash.ts";
import type { AdminConfig } from "../config/config.ts";
import { followFiles } from "../config/follow-files.ts";
import { adminToken } from "../config/value-types.ts";
import { type DataDirectory, replacePrivateFile } from "../data-directory.ts";
import type { NewSecret } from "../domain/api-keys.ts";
import type { Clock, OperatorStore } from "../domain/ports.ts";
import type { Log } from "../observe/log.ts";

const GENERATED = /^pet_admin_[\w-]{43}$/;

/** 256 random bits, in characters that a URL needs not escape. */
export function generateToken(): string {
  return `pet_admin_${randomBytes(32).toString("base64url")}`;
}

/** What is stored of a token. The hint leaves 210 of the 258 bits unknown; of a token made by hand it shows nothing. */
export function toNewToken(token: string): NewSecret {
  const hint = GENERATED.test(token) ? `${token.slice(0, 14)}…${token.slice(-4)}` : "made by hand";
  return { hash: sha256(token), hint };
}

/** Throws if the file cannot be read, or if what it contains is not a token. */
export function readTokenFile(path: string): string {
  const token = adminToken.parse(readFileSync(path, "utf8").trim());
  if (token === undefined) throw new Error(`${path} does not contain an admin token: ${adminToken.expected}`);
  return token;
}

export function saveToken(path: string, token: string): void {
  replacePrivateFile(path, `${token}\n`);
}

/** A rotation takes effect within a second. */
const FOLLOW_EVERY_MS = 250;

/** Reads the file again when it has changed. Returns a function that stops it. */
export function followTokenFile(file: string, onChange: (token: string) => void, log: Log): () => void {
  return followFiles([file], {
    everyMs: FOLLOW_EVERY_MS,
    read: () => readTokenFile(file),
    onChange(token) {
      onChange(token);
      log.event("admin.token-replaced");
    },
    onError: (error) => log.event("admin.token-unreadable", { file, error }),
  });
}

export interface OpenedTokens {
  /** That of the operator `token`, who is in no database; undefined if there is none. */
  readonly setting?: string;
  /** Where a token is that works; undefined if it is in a variable, or if only its owner has it. */
  readonly file?: string;
}

interface OpenTokensOptions {
  readonly directory: DataDirectory;
  readonly admin: AdminConfig;
  readonly operators: OperatorStore;
  readonly clock: Pick<Clock, "now">;
  readonly log: Log;
}

/** The token of a setting; without one, the first start creates an operator, whose token is in the data directory. */
export async function openTokens(options: OpenTokensOptions): Promise<OpenedTokens> {
  const { directory, admin, operators, clock, log } = options;
  if (admin.token !== undefined) return givenToken(admin.token, admin);
  const file = resolve(directory.files.adminToken);
  const isSaved = statSync(file, { throwIfNoEntry: false }) !== undefined;
  const token = isSaved ? readTokenFile(file) : generateToken();
  const by = { actor: { kind: "server", name: hostname() }, at: clock.now() } as const;
  const first = await operators.createFirstOperator(FIRST_OPERATOR, toNewToken(token), by);
  if (isSaved) return first ? { file } : savedToken(token, file, options);
  if (first === undefined) return {};
  try {
    saveToken(file, token);
    return { file };
  } catch (error) {
    // Whoever can use the command line can sign in and create operators.
    log.event("admin.token-not-saved", { error });
    return {};
  }
}

const FIRST_OPERATOR = { name: "admin", role: "admin" } as const;
const METRICS_OPERATOR = { name: "metrics", role: "metrics" } as const;

/** So that a deployment has a token for Prometheus before its first start. */
export async function importMetricsToken(
  file: string,
  { operators, clock, log }: Pick<OpenTokensOptions, "operators" | "clock" | "log">,
): Promise<void> {
  const token = toNewToken(readTokenFile(file));
  const by = { actor: { kind: "server", name: hostname() }, at: clock.now() } as const;
  const imported = await operators.importOperator(METRICS_OPERATOR, token, by);
  if (imported instanceof Rejection) throw new Error(`--metrics-token-file: ${imported.message}`);
  if ((await operators.readAccess()).tokens.has(token.hash)) return;
  log.event("admin.token-outdated", { file, operator: METRICS_OPERATOR.name });
}

/**
 * A token that the database has never seen is that of a server which an earlier release ran beside others. One that was
 * replaced, or whose operator is revoked, must not come back to life.
 */
async function savedToken(
  token: string,
  file: string,
  { operators, log }: OpenTokensOptions,
): Promise<OpenedTokens> {
  const { hash } = toNewToken(token);
  const operator = await operators.findByToken(hash);
  if (operator === undefined) return { setting: token, file };
  if ((await operators.readAccess()).tokens.has(hash)) return { file };
  log.event("admin.token-outdated", { file, operator: operator.name });
  return {};
}

/** A flag or variable can override the file, which then does not matter. */
function givenToken(setting: string, { tokenFile }: AdminConfig): OpenedTokens {
  const isFromFile = tokenFile !== undefined && readTokenFile(tokenFile) === setting;
  return { setting, ...(isFromFile && { file: resolve(tokenFile) }) };
}

export const CODE_MS = 5 * 60_000;

interface SignInUrlOptions {
  readonly url: string;
  readonly operators: OperatorStore;
  readonly clock: Pick<Clock, "now">;
  /** By default the first admin, or the operator `token` if there is none. */
  readonly operatorId?: number | null;
}

/** Whoever opens the URL first, within five minutes, is signed in. */
export async function createSignInUrl(options: SignInUrlOptions): Promise<string> {
  const { url, operators, clock } = options;
  const { operatorId = await firstAdmin(operators) } = options;
  // No punctuation, which terminals would leave out of a link.
  const code = randomBytes(20).toString("hex");
  const now = clock.now();
  await operators.createCode({ codeHash: sha256(code), operatorId, endsAt: now + CODE_MS }, now);
  return `${url}/?code=${code}`;
}

async function firstAdmin(operators: OperatorStore): Promise<number | null> {
  const all = await operators.listOperators();
  return all.find(({ role, revokedAt }) => role === "admin" && revokedAt === undefined)?.id ?? null;
}

/** For `petstore admin-url`. Returns a function that removes it, unless another server has replaced it since. */
export function saveAdminUrl({ files: { adminUrl } }: DataDirectory, url: string): () => void {
  const text = `${url}\n`;
  try {
    replacePrivateFile(adminUrl, text);
  } catch {
    return () => {};
  }
  return () => {
    if (existsSync(adminUrl) && readFileSync(adminUrl, "utf8") === text) rmSync(adminUrl, { force: true });
  };
}
