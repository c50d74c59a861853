import { createHash } from "node:crypto";
import type { Cluster, Redis } from "ioredis";
import {
  type Ban,
  type Decision,
  newUsage,
  type Outcome,
  type Subject,
  type Usage,
  type Window,
} from "../../domain/rate-limit.ts";
import { setBan, storedBanTime, storedBanUntilOrLength } from "../../domain/stored-ban.ts";
import decide from "./decide.lua" with { type: "text" };
import readUsage from "./read-usage.lua" with { type: "text" };
import setUsage from "./set-usage.lua" with { type: "text" };
import unban from "./unban.lua" with { type: "text" };
import usage from "./usage.lua" with { type: "text" };

interface Script {
  readonly text: string;
  readonly sha: string;
}

export const DECIDE = script(decide);
export const READ_USAGE = script(readUsage);
export const SET_USAGE = script(setUsage);
export const UNBAN = script(unban);

function script(body: string): Script {
  const text = usage + body;
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

interface ScriptInput {
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/**
 * The server does not have the script (it was restarted, promoted or flushed), or a cluster moved the slot to another
 * node. The script did not run, so running it again, with its text, counts nothing twice.
 */
const DID_NOT_RUN = /^(?:NOSCRIPT|MOVED|ASK) /;

export async function run(
  client: Redis | Cluster,
  { text, sha }: Script,
  { keys, args }: ScriptInput,
): Promise<unknown> {
  try {
    return await client.evalsha(sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error && DID_NOT_RUN.test(error.message))) throw error;
    return client.eval(text, keys.length, ...keys, ...args);
  }
}

/** A subject in the name of its key, such as `key:7`. */
export function formatSubject({ kind, id }: Subject): string {
  return `${kind}:${id}`;
}

export interface Decisions {
  /** In the order of the requests. */
  readonly decisions: readonly Decision[];
  /** The bans of those requests that were banned, by their position. */
  readonly bans: ReadonlyMap<number, ScriptBan>;
}

/** Its times are by the server's clock, which need not agree with ours. */
export interface ScriptBan extends Ban {
  /** How long before the decision it began. */
  readonly agoMs: number;
  /** Whether the request led to it. */
  readonly isNew: boolean;
}

const OUTCOMES: readonly Outcome[] = ["allowed", "limited", "banned", "banned"];
const NEW_BAN = 3;
const NUMBERS_PER_DECISION = 5;
const NUMBERS_PER_USAGE = 10;

export function parseDecisions(reply: unknown, count: number): Decisions {
  const numbers = parseNumbers(reply, count * NUMBERS_PER_DECISION);
  const bans = new Map<number, ScriptBan>();
  const decisions = Array.from({ length: count }, (_, i) => {
    const decision = decisionAt(numbers, i * NUMBERS_PER_DECISION);
    if (decision.outcome === "banned") bans.set(i, banAt(numbers, i * NUMBERS_PER_DECISION));
    return decision;
  });
  return { decisions, bans };
}

function decisionAt(numbers: readonly number[], at: number): Decision {
  const number = (offset: number) => numbers[at + offset] ?? 0;
  const outcome = OUTCOMES[number(0)];
  if (outcome === undefined) throw new TypeError("the script replied with an unknown outcome");
  return {
    outcome,
    limit: number(1),
    remaining: outcome === "banned" ? 0 : number(2),
    resetAt: Math.ceil(number(3) / 1000),
    retryAfter: outcome === "allowed" ? 0 : Math.max(1, Math.ceil(number(4) / 1000)),
  };
}

function banAt(numbers: readonly number[], at: number): ScriptBan {
  const [outcome, , bannedAt = 0, bannedUntil = 0, waitMs = 0] = numbers.slice(at, at + NUMBERS_PER_DECISION);
  return { bannedAt, bannedUntil, agoMs: bannedUntil - waitMs - bannedAt, isNew: outcome === NEW_BAN };
}

export function parseUsage(reply: unknown): Usage | undefined {
  if (Array.isArray(reply) && reply.length === 0) return undefined;
  const numbers = parseNumbers(reply, NUMBERS_PER_USAGE);
  const number = (offset: number) => numbers[offset] ?? 0;
  const windowAt = (at: number): Window => ({
    openedAt: number(at),
    used: number(at + 1),
    firstRejectedAt: number(at + 2),
    strikes: number(at + 3),
  });
  const usage: Usage = { ...newUsage(), minute: windowAt(0), day: windowAt(4) };
  setBan(usage, number(8), number(9));
  return usage;
}

/** The ten numbers that `parseUsage` reads. */
export function usageNumbers(usage: Usage): number[] {
  const { minute, day } = usage;
  return [
    ...windowNumbers(minute),
    ...windowNumbers(day),
    storedBanTime(usage),
    storedBanUntilOrLength(usage),
  ];
}

function windowNumbers({ openedAt, used, firstRejectedAt, strikes }: Window): number[] {
  return [openedAt, used, firstRejectedAt, strikes];
}

function parseNumbers(reply: unknown, count: number): readonly number[] {
  if (!areNumbers(reply) || reply.length !== count) {
    throw new TypeError(`the script did not reply with ${count} numbers`);
  }
  return reply;
}

function areNumbers(reply: unknown): reply is readonly number[] {
  return Array.isArray(reply) && reply.every((each) => typeof each === "number");
}
