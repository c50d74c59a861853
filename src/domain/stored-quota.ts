import { NEVER, type Quota, type Window } from "./rate-limit.ts";

/**
 * The ten numbers of a quota, in the order in which every store has them. Two stand for the ban: the first release
 * stored the current ban alone, and takes a last ban in this form for one that is over.
 *
 *     a current ban   when it began   when it ends
 *     the last ban    when it ended   -1 - its length
 *     neither         -1              -1
 */
export function toStored({ minute, day, bannedAt, bannedUntil, lastBanMs }: Quota): number[] {
  const ban = bannedAt === NEVER ? [bannedUntil, -1 - lastBanMs] : [bannedAt, bannedUntil];
  return [...windowNumbers(minute), ...windowNumbers(day), ...ban];
}

function windowNumbers({ openedAt, used, graceBeganAt, strikes }: Window): number[] {
  return [openedAt, used, graceBeganAt, strikes];
}

export function fromStored(numbers: readonly (number | undefined)[]): Quota {
  const [first = -1, second = -1] = numbers.slice(8);
  const ban =
    second < 0
      ? { bannedAt: NEVER, bannedUntil: first, lastBanMs: -1 - second }
      : { bannedAt: first, bannedUntil: second, lastBanMs: 0 };
  return { minute: windowOf(numbers), day: windowOf(numbers.slice(4)), ...ban };
}

function windowOf(numbers: readonly (number | undefined)[]): Window {
  const [openedAt = 0, used = 0, graceBeganAt = NEVER, strikes = 0] = numbers;
  return { openedAt, used, graceBeganAt, strikes };
}
