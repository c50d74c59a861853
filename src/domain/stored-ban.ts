import { NEVER, type Usage } from "./rate-limit.ts";

/**
 * The ban of a usage as two numbers, in the form that every store has. During a ban there is no last ban, so:
 *
 *     a current ban   bannedAt         bannedUntil
 *     a last ban      lastBanEndedAt   -1 - lastBanMs
 *     neither         NEVER            NEVER
 *
 * Earlier releases stored the current ban alone. To them, a last ban is a ban that is over.
 */
export function setBan(usage: Usage, time: number, untilOrLength: number): void {
  const isLast = untilOrLength < NEVER;
  usage.bannedAt = isLast ? NEVER : time;
  usage.bannedUntil = isLast ? NEVER : untilOrLength;
  usage.lastBanEndedAt = isLast ? time : NEVER;
  usage.lastBanMs = isLast ? NEVER - untilOrLength : 0;
}

export function storedBanTime(usage: Usage): number {
  return hasLastBan(usage) ? usage.lastBanEndedAt : usage.bannedAt;
}

export function storedBanUntilOrLength(usage: Usage): number {
  return hasLastBan(usage) ? NEVER - usage.lastBanMs : usage.bannedUntil;
}

function hasLastBan({ bannedUntil, lastBanEndedAt }: Usage): boolean {
  return bannedUntil === NEVER && lastBanEndedAt !== NEVER;
}
