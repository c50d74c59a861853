import type { Outcome, Standing, Verdict } from "../../domain/rate-limit.ts";

const OUTCOMES: readonly Outcome[] = ["admitted", "limited", "banned"];
/** Outcome, limit, remaining, when that resets and how long to wait. */
const PER_VERDICT = 5;
const PER_STANDING = 10;

/** What the script said of a batch, in its order. */
export function readVerdicts(reply: unknown, count: number): Verdict[] {
  const numbers = readNumbers(reply, count * PER_VERDICT);
  return Array.from({ length: count }, (_, i) => verdictAt(numbers, i * PER_VERDICT));
}

function verdictAt(numbers: readonly number[], at: number): Verdict {
  const number = (offset: number) => numbers[at + offset] ?? 0;
  const outcome = OUTCOMES[number(0)];
  if (outcome === undefined) throw new TypeError("the script gave an outcome that there is not");
  return {
    outcome,
    limit: number(1),
    remaining: number(2),
    resetAt: Math.ceil(number(3) / 1000),
    retryAfter: outcome === "admitted" ? 0 : Math.max(1, Math.ceil(number(4) / 1000)),
  };
}

/** No numbers at all mean that nothing is open and no ban stands. */
export function readStanding(reply: unknown): Standing | undefined {
  if (Array.isArray(reply) && reply.length === 0) return undefined;
  const numbers = readNumbers(reply, PER_STANDING);
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
