import type { Engine, Expectation, Figures } from "./scenario.ts";

/** What the machine itself adds, twice over: a request goes on to an engine and back. A little is allowed always. */
const SLACK_MS = 75;
const slackOf = ({ longestOfControlMs }: Figures) => Math.max(SLACK_MS, 2 * longestOfControlMs);

export const nothingLost: Expectation = ({ creates: { lost } }) =>
  lost === 0 ? undefined : `${lost} acknowledged creates are lost`;

export const nothingDoubled: Expectation = ({ creates: { doubled } }) =>
  doubled === 0 ? undefined : `${doubled} creates were done twice`;

export const allDone: Expectation = ({ failed: [first, ...others] }) =>
  first === undefined ? undefined : `not done after all retries: ${first} and ${others.length} others`;

/** Only these errors, by status and code. */
export function onlyErrors(...allowed: readonly string[]): Expectation {
  return ({ errors, causes }) => {
    const others = Object.entries(errors).filter(([error]) => !allowed.includes(error));
    const why = causes.length === 0 ? "" : ` (${causes.join("; ")})`;
    return others.length === 0
      ? undefined
      : `unexpected: ${others.map(([e, n]) => `${n} × ${e}`).join(", ")}${why}`;
  };
}

export const refusalsSayWhen: Expectation = ({ withoutRetryAfter }) =>
  withoutRetryAfter === 0 ? undefined : `${withoutRetryAfter} answers of 503 had no Retry-After`;

/** Nobody waits longer than that, but for what the machine itself adds. */
export function waitsAtMost(ms: number): Expectation {
  return (figures) => {
    const bound = ms + slackOf(figures);
    return figures.longestMs <= bound
      ? undefined
      : `the longest wait was ${Math.round(figures.longestMs)} ms, more than ${ms} and ${Math.round(bound - ms)} of slack`;
  };
}

/** As soon as a server knows, it says so at once. */
export function refusesWithin(ms: number): Expectation {
  return (figures) => {
    const { longestKnownMs } = figures;
    if (longestKnownMs === undefined) return "nobody was refused";
    return longestKnownMs <= ms + slackOf(figures)
      ? undefined
      : `refusing took ${Math.round(longestKnownMs)} ms, more than ${ms}`;
  };
}

export function backWithin(ms: number): Expectation {
  return ({ backAfterMs }) => {
    if (backAfterMs === undefined) return "the fault was not noticed";
    return backAfterMs <= ms ? undefined : `back only after ${Math.round(backAfterMs)} ms`;
  };
}

/** Every server says so in one line, and in no other while the fault lasts. */
export function eachSaysSo(engine: Engine): Expectation {
  return ({ turns, servers }) => {
    const { atFault } = turns[engine];
    return atFault === servers
      ? undefined
      : `${servers} servers said ${atFault} times that ${engine} is away`;
  };
}

export const nobodyNotices: Expectation = ({ turns }) =>
  turns.Valkey.atFault === 0 ? undefined : `servers said ${turns.Valkey.atFault} times that Valkey is away`;

/** Of every scenario. */
export const WHATEVER_HAPPENS = [nothingLost, nothingDoubled, allDone];
