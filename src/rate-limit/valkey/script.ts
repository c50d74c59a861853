import { createHash } from "node:crypto";
import type { Cluster, Redis } from "ioredis";
import { type Limits, NEVER, newQuota, type KeySubject, type Quota } from "../../domain/rate-limit.ts";
import text from "./decide.lua" with { type: "text" };

export interface DecisionRequest {
  readonly subject: KeySubject;
  readonly limits: Limits;
}

/** Requests of one key with the same limits. */
export interface RequestGroup extends DecisionRequest {
  readonly requests: { readonly length: number };
}

/** What a server knows of a key, when Valkey takes over counting. */
export interface KeyHandOver {
  readonly subject: KeySubject;
  readonly quota: Quota;
  /** When the key was unbanned, or NEVER. */
  readonly unbannedAt: number;
}

/** The decisions about a group: the first requests are allowed, the next ones limited, and the rest banned. */
export interface GroupReply {
  readonly allowed: number;
  readonly limited: number;
  /** Whether one of the requests led to the ban. */
  readonly isNewBan: boolean;
  /** The quota after all requests, without the times of its grace periods. */
  readonly quota: Quota;
}

/** The replies in the order of what was handed over and of the groups. Times are by Valkey's clock. */
export interface Replies {
  /** When Valkey replied. */
  readonly now: number;
  readonly decided: readonly GroupReply[];
}

const SHA = createHash("sha1").update(text).digest("hex");

/**
 * Valkey does not have the script because it was restarted, promoted or flushed, or a cluster moved the slot to
 * another node. The script did not run, so sending its text counts every request once.
 */
const DID_NOT_RUN = /^(?:NOSCRIPT|MOVED|ASK) /;

export async function runScript(
  client: Redis | Cluster,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  try {
    return await client.evalsha(SHA, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error && DID_NOT_RUN.test(error.message))) throw error;
    return client.eval(text, keys.length, ...keys, ...args);
  }
}

const NUMBERS_PER_REPLY = 12;

export function parseReplies(
  reply: unknown,
  { handOvers, groups }: { readonly handOvers: number; readonly groups: number },
): Replies {
  const numbers: unknown = JSON.parse(`[${String(reply)}]`);
  if (!areNumbers(numbers) || numbers.length !== 1 + (handOvers + groups) * NUMBERS_PER_REPLY)
    throw new TypeError("the script replied with another number of numbers");
  const decided: GroupReply[] = [];
  for (let at = 1 + handOvers * NUMBERS_PER_REPLY; at < numbers.length; at += NUMBERS_PER_REPLY) {
    const { [at]: allowed = 0, [at + 1]: limited = 0, [at + 2]: bans = 0 } = numbers;
    decided.push({ allowed, limited, isNewBan: bans > 0, quota: quotaAt(numbers, at + 3) });
  }
  return { now: numbers[0] ?? 0, decided };
}

function quotaAt(numbers: readonly number[], at: number): Quota {
  const quota = newQuota();
  const { minute, day } = quota;
  minute.openedAt = numbers[at] ?? 0;
  minute.used = numbers[at + 1] ?? 0;
  minute.strikes = numbers[at + 2] ?? 0;
  day.openedAt = numbers[at + 3] ?? 0;
  day.used = numbers[at + 4] ?? 0;
  day.strikes = numbers[at + 5] ?? 0;
  quota.bannedAt = numbers[at + 6] ?? NEVER;
  quota.bannedUntil = numbers[at + 7] ?? NEVER;
  quota.lastBanMs = numbers[at + 8] ?? 0;
  return quota;
}

function areNumbers(reply: unknown): reply is readonly number[] {
  return Array.isArray(reply) && reply.every((each) => typeof each === "number");
}
