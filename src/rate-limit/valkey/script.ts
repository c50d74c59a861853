import { createHash } from "node:crypto";
import type { Cluster, Redis } from "ioredis";
import {
  type Decision,
  type Limits,
  NEVER,
  newUsage,
  type Report,
  type Subject,
  type Usage,
} from "../../domain/rate-limit.ts";
import text from "./decide.lua" with { type: "text" };

/** An API key, the only subject that servers share. */
export type KeySubject = Extract<Subject, { kind: "key" }>;

export interface DecisionRequest {
  readonly subject: KeySubject;
  readonly limits: Limits;
}

export interface KeyReport extends Report {
  readonly subject: KeySubject;
}

/** The usage after the decision, without its strikes. */
export interface DecisionReply {
  readonly outcome: Decision["outcome"];
  /** Whether the request led to the ban. */
  readonly isNewBan: boolean;
  readonly usage: Usage;
}

/** In the order of the reports and of the requests. Times are by Valkey's clock. */
export interface Replies {
  /** When Valkey replied. */
  readonly now: number;
  readonly reported: readonly Usage[];
  readonly decided: readonly DecisionReply[];
}

const SHA = createHash("sha1").update(text).digest("hex");

/**
 * The server does not have the script (it was restarted, promoted or flushed), or a cluster moved the slot to another
 * node. The script did not run, so running it again, with its text, counts nothing twice.
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

const OUTCOMES: readonly DecisionReply["outcome"][] = ["allowed", "limited", "banned", "banned"];
const NEW_BAN = 3;
const NUMBERS_PER_REPLY = 7;

export function parseReplies(
  reply: unknown,
  { reports, requests }: { readonly reports: number; readonly requests: number },
): Replies {
  const numbers: unknown = JSON.parse(`[${String(reply)}]`);
  if (!areNumbers(numbers) || numbers.length !== 1 + (reports + requests) * NUMBERS_PER_REPLY)
    throw new TypeError("the script replied with another number of numbers");
  const reported: Usage[] = [];
  const decided: DecisionReply[] = [];
  for (let at = 1; at < numbers.length; at += NUMBERS_PER_REPLY) {
    const code = numbers[at] ?? 0;
    const outcome = OUTCOMES[code];
    if (outcome === undefined) throw new TypeError("the script replied with an unknown outcome");
    const usage = usageAt(numbers, at + 1);
    if (reported.length < reports) reported.push(usage);
    else decided.push({ outcome, isNewBan: code === NEW_BAN, usage });
  }
  return { now: numbers[0] ?? 0, reported, decided };
}

function usageAt(numbers: readonly number[], at: number): Usage {
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

function areNumbers(reply: unknown): reply is readonly number[] {
  return Array.isArray(reply) && reply.every((each) => typeof each === "number");
}

/** The nodes of a cluster have clocks of their own: they count a report as sent when it arrives. */
export function reportText(report: Report, isCluster: boolean): string {
  const { minute, day, ban, unbannedAt, madeAt, sentAt = NEVER } = report;
  return JSON.stringify([
    minute.openedAt,
    minute.used,
    day.openedAt,
    day.used,
    ban?.bannedAt ?? NEVER,
    ban?.bannedUntil ?? NEVER,
    unbannedAt ?? NEVER,
    madeAt,
    isCluster ? NEVER : sentAt,
  ]);
}
