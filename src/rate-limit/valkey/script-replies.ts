import type { Outcome, Usage, Decision } from "../../domain/rate-limit.ts";

const OUTCOMES: readonly Outcome[] = ["allowed", "limited", "banned"];
/** Outcome, limit, remaining, when that resets and how long to wait. */
const PER_DECISION = 5;
const PER_USAGE = 10;

/** What the script said of a batch, in its order. */
export function readDecisions(reply: unknown, count: number): Decision[] {
  const numbers = readNumbers(reply, count * PER_DECISION);
  return Array.from({ length: count }, (_, i) => decisionAt(numbers, i * PER_DECISION));
}

function decisionAt(numbers: readonly number[], at: number): Decision {
  const number = (offset: number) => numbers[at + offset] ?? 0;
  const outcome = OUTCOMES[number(0)];
  if (outcome === undefined) throw new TypeError("the script gave an outcome that there is not");
  return {
    outcome,
    limit: number(1),
    remaining: number(2),
    resetAt: Math.ceil(number(3) / 1000),
    retryAfter: outcome === "allowed" ? 0 : Math.max(1, Math.ceil(number(4) / 1000)),
  };
}

/** No numbers at all mean that nothing is open and no ban stands. */
export function readUsage(reply: unknown): Usage | undefined {
  if (Array.isArray(reply) && reply.length === 0) return undefined;
  const numbers = readNumbers(reply, PER_USAGE);
  const number = (offset: number) => numbers[offset] ?? 0;
  const windowAt = (at: number) => ({
    openedAt: number(at),
    used: number(at + 1),
    refusedAt: number(at + 2),
    strikes: number(at + 3),
  });
  return { minute: windowAt(0), day: windowAt(4), bannedAt: number(8), bannedUntil: number(9) };
}

function readNumbers(reply: unknown, count: number): readonly number[] {
  if (!areNumbers(reply) || reply.length !== count) {
    throw new TypeError("the script answered something else than the numbers it should");
  }
  return reply;
}

function areNumbers(reply: unknown): reply is readonly number[] {
  return Array.isArray(reply) && reply.every((each) => typeof each === "number");
}
