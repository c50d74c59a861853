import type { Database, Figures } from "./figures.ts";

/** Says what is wrong, if anything is. */
export type Expectation = (figures: Figures) => string | undefined;

/** What the machine itself may add to a response time: twice the control server's longest, and at least this. */
const TOLERANCE_MS = 75;
const toleranceOf = ({ longestControlMs }: Figures) => Math.max(TOLERANCE_MS, 2 * longestControlMs);

const nothingLost: Expectation = ({ creates: { lost } }) =>
  lost === 0 ? undefined : `${lost} acknowledged creates are lost`;

const nothingDuplicated: Expectation = ({ creates: { duplicated } }) =>
  duplicated === 0 ? undefined : `${duplicated} creates were done twice`;

const allSucceed: Expectation = ({ failed: [first, ...others] }) =>
  first === undefined ? undefined : `failed after all retries: ${first} and ${others.length} others`;

export const ALWAYS = [nothingLost, nothingDuplicated, allSucceed];

export function onlyErrors(...allowed: readonly string[]): Expectation {
  return ({ errors, causes }) => {
    const others = Object.entries(errors).filter(([error]) => !allowed.includes(error));
    const why = causes.length === 0 ? "" : ` (${causes.join("; ")})`;
    const list = others.map(([error, count]) => `${count} × ${error}`).join(", ");
    return others.length === 0 ? undefined : `unexpected errors: ${list}${why}`;
  };
}

export const retryAfterPresent: Expectation = ({ withoutRetryAfter }) =>
  withoutRetryAfter === 0 ? undefined : `${withoutRetryAfter} responses of 503 had no Retry-After`;

export function respondsWithin(ms: number): Expectation {
  return (figures) => {
    const { longestMs } = figures;
    const tolerance = toleranceOf(figures);
    return longestMs <= ms + tolerance
      ? undefined
      : `the longest response took ${Math.round(longestMs)} ms, more than ${ms} with a tolerance of ${Math.round(tolerance)}`;
  };
}

/** A server that knows that its database is unavailable responds at once. */
export function failsFastWithin(ms: number): Expectation {
  return (figures) => {
    const { longestFailFastMs } = figures;
    if (longestFailFastMs === undefined) return "no request was rejected";
    return longestFailFastMs <= ms + toleranceOf(figures)
      ? undefined
      : `a 503 took ${Math.round(longestFailFastMs)} ms, more than ${ms}`;
  };
}

export function recoversWithin(ms: number): Expectation {
  return ({ recoveryMs }) => {
    if (recoveryMs === undefined) return "no server noticed the fault";
    return recoveryMs <= ms ? undefined : `recovered only after ${Math.round(recoveryMs)} ms`;
  };
}

/** One log message of each server while the fault lasts. */
export function loggedOnce(database: Database): Expectation {
  return ({ outages, servers }) => {
    const { expected } = outages[database];
    return expected === servers
      ? undefined
      : `${servers} servers logged ${expected} times that ${database} is unavailable`;
  };
}

export const notNoticed: Expectation = ({ outages: { Valkey } }) =>
  Valkey.expected === 0 ? undefined : `servers logged ${Valkey.expected} times that Valkey is unavailable`;
