import { createHash } from "node:crypto";
import type { Cluster, Redis } from "ioredis";
import { NEVER, newUsage, type Report, type Usage, usageOf } from "../../domain/rate-limit.ts";
import decide from "./decide.lua" with { type: "text" };
import type { DecisionReply, Replies } from "./link.ts";
import enterServer from "./enter-server.lua" with { type: "text" };
import readUsage from "./read-usage.lua" with { type: "text" };
import report from "./report.lua" with { type: "text" };
import usage from "./usage.lua" with { type: "text" };

interface Script {
  readonly text: string;
  readonly sha: string;
}

export const DECIDE = script(decide);
export const ENTER_SERVER = script(enterServer);
export const READ_USAGE = script(readUsage);
export const REPORT = script(report);

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

const OUTCOMES: readonly DecisionReply["outcome"][] = ["allowed", "limited", "banned", "banned"];
const NEW_BAN = 3;
const NUMBERS_PER_STATE = 6;
const NUMBERS_PER_DECISION = 1 + NUMBERS_PER_STATE;
const NUMBERS_PER_USAGE = 10;

export function parseDecisions(reply: unknown, count: number): Replies<DecisionReply> {
  const numbers = parseNumbers(JSON.parse(`[${String(reply)}]`), 1 + count * NUMBERS_PER_DECISION);
  const replies: DecisionReply[] = [];
  for (let at = 1; at < numbers.length; at += NUMBERS_PER_DECISION) {
    const number = numbers[at] ?? 0;
    const outcome = OUTCOMES[number];
    if (outcome === undefined) throw new TypeError("the script replied with an unknown outcome");
    replies.push({ outcome, isNewBan: number === NEW_BAN, usage: stateAt(numbers, at + 1) });
  }
  return { now: numbers[0] ?? 0, replies };
}

export function parseTexts(reply: unknown): readonly string[] {
  if (!Array.isArray(reply)) throw new TypeError("the script did not reply with texts");
  return reply.map(String);
}

export function parseReported(reply: unknown, count: number): Replies<Usage> {
  const numbers = parseNumbers(reply, 1 + count * NUMBERS_PER_STATE);
  const replies = Array.from({ length: count }, (_, i) => stateAt(numbers, 1 + i * NUMBERS_PER_STATE));
  return { now: numbers[0] ?? 0, replies };
}

function stateAt(numbers: readonly number[], at: number): Usage {
  const usage = newUsage();
  const { minute, day } = usage;
  minute.openedAt = numbers[at] ?? 0;
  minute.used = numbers[at + 1] ?? 0;
  day.openedAt = numbers[at + 2] ?? 0;
  day.used = numbers[at + 3] ?? 0;
  usage.bannedAt = numbers[at + 4] ?? NEVER;
  usage.bannedUntil = numbers[at + 5] ?? NEVER;
  return usage;
}

/** What the report script reads. */
export function reportNumbers({ minute, day, ban, unbannedAgoMs, sentAt }: Report): number[] {
  return [
    minute.openedAgoMs,
    minute.used,
    day.openedAgoMs,
    day.used,
    ban?.agoMs ?? NEVER,
    ban?.lengthMs ?? NEVER,
    unbannedAgoMs ?? NEVER,
    sentAt ?? NEVER,
  ];
}

/** The numbers that `usageNumbers` writes. */
export function parseUsage(reply: unknown): Usage | undefined {
  if (Array.isArray(reply) && reply.length === 0) return undefined;
  return usageOf(parseNumbers(reply, NUMBERS_PER_USAGE));
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
