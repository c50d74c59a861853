import { MAX_CAUSES } from "../../src/runtime/outage-causes.ts";
import type { Audit } from "../harness/api-client.ts";
import type { Fleet } from "../harness/fleet.ts";
import type { LogLine } from "../harness/petstore.ts";
import { countsOf, countTexts, median } from "../harness/statistics.ts";
import { type Attempt, durationOf, isError, type SteadyLoad } from "../harness/steady-load.ts";
import type { Control } from "./control.ts";

export type Database = "PostgreSQL";

/** The period of a fault. All times are those of `performance.now()`. */
interface Period {
  readonly beganAt: number;
  /** When the repair began. Servers may notice it before it is over. */
  readonly repairedFrom: number;
  readonly endedAt: number;
}

export interface Measurement extends Period {
  readonly load: SteadyLoad;
  readonly fleet: Fleet;
  readonly audited: Audit;
  readonly notes: readonly string[];
  readonly control: Control;
}

const NORMAL = /^(?:server\.(?:started|stopping|stopped)|admin\.started|key\.(?:first-created|changed))$/;
const OUTAGE = { PostgreSQL: "database.unavailable" } as const;
const OUTAGES: ReadonlySet<string> = new Set(Object.values(OUTAGE));
const RECOVERIES: ReadonlySet<string> = new Set(["database.available"]);
/** The longest time that a server waits for a query before it knows that PostgreSQL is unavailable. */
export const QUERY_TIMEOUT_MS = 2_000;
const REJECTED = "request.unavailable";
/** How long a fault that ends at once still affects requests. */
const NOTICE_MS = 500;

export type Figures = ReturnType<typeof measureFigures>;

export function measureFigures(measurement: Measurement) {
  const { load, fleet, audited, notes, control, beganAt } = measurement;
  const { attempts } = load;
  const lines = fleet.logs.flat();
  return {
    requests: attempts.length,
    errors: countsOf(attempts.filter(isError).map(errorOf)),
    withoutRetryAfter: attempts.filter((each) => is503(each) && each.retryAfterMs < 1_000).length,
    failed: load.failures,
    medianMs: median(attempts.map(durationOf)),
    longestMs: longestOf(attempts.filter(({ endedAt }) => endedAt >= beganAt)) ?? 0,
    longestControlMs: control.longestSince(beganAt),
    longestTakeOverMs: control.longestTakeOverSince(beganAt),
    longestFailFastMs: longestOf(failFastAttempts(attempts, measurement)),
    recoveryMs: recoveryOf(attempts, fleet, measurement),
    creates: audited,
    log: countsOf(lines.map(({ event }) => event).filter((event) => !NORMAL.test(event))),
    outages: {
      PostgreSQL: outagesOf("PostgreSQL", lines, measurement),
    },
    causes: causesOf(lines),
    notes,
    servers: fleet.urls.length,
  };
}

const is503 = ({ status }: Attempt) => status === 503;
const errorOf = ({ status, code }: Attempt) => (status === 0 ? `no ${code}` : `${status} ${code}`);

function longestOf(attempts: readonly Attempt[]): number | undefined {
  return attempts.length === 0 ? undefined : Math.max(...attempts.map(durationOf));
}

/**
 * The 503 responses of a server that has already responded 503, from the time on in which it must have noticed. Servers
 * notice an outage of the database separately for reads and for creates.
 */
function failFastAttempts(attempts: readonly Attempt[], { beganAt, endedAt }: Period): Attempt[] {
  const rejected = attempts.filter((each) => is503(each) && each.startedAt > beganAt + QUERY_TIMEOUT_MS);
  const paths = Map.groupBy(rejected, ({ server, kind }) => `${server} ${kind === "create"}`);
  return [...paths.values()].flatMap((each) => {
    const firstEnd = Math.min(...each.map((attempt) => attempt.endedAt));
    return each.filter((attempt) => attempt.startedAt > firstEnd && attempt.endedAt < endedAt);
  });
}

export function outageLines(lines: readonly LogLine[], database: Database): LogLine[] {
  return lines.filter(({ event }) => event === OUTAGE[database]);
}

function outagesOf(database: Database, lines: readonly LogLine[], period: Period) {
  const outages = outageLines(lines, database);
  const expected = outages.filter((line) => isDuring(line, period)).length;
  return { expected, unexpected: outages.length - expected };
}

const timeOf = ({ at }: LogLine) => at - performance.timeOrigin;

/** Whether a line was logged in a period. Times in the log are whole milliseconds. */
function isDuring(line: LogLine, { beganAt, endedAt }: Period): boolean {
  return timeOf(line) >= beganAt - 1 && timeOf(line) <= Math.max(endedAt, beganAt + NOTICE_MS);
}

function causesOf(lines: readonly LogLine[]): string[] {
  const rejections = lines.filter(({ event }) => event === REJECTED);
  return [...new Set(rejections.flatMap(({ text }) => /"reason":"([^"]*)"/.exec(text)?.[1] ?? []))];
}

/** The time from the end of the fault to its last sign: an error, or a server's log message about its recovery. */
function recoveryOf(attempts: readonly Attempt[], { logs }: Fleet, period: Period): number | undefined {
  const errors = attempts.filter(isError).map(({ endedAt }) => endedAt);
  const recoveries = logs.flatMap((log) => {
    if (!log.some((line) => OUTAGES.has(line.event) && isDuring(line, period))) return [];
    const times = log.filter(({ event }) => RECOVERIES.has(event)).map(timeOf);
    return times.find((at) => at >= period.repairedFrom - 1) ?? [];
  });
  const signs = [...errors, ...recoveries];
  return signs.length === 0 ? undefined : Math.max(0, Math.max(...signs) - period.endedAt);
}

/** Returns a description of what is wrong, if anything is. */
export type Expectation = (figures: Figures) => string | undefined;

const unless = (isRight: boolean, problem: string) => (isRight ? undefined : problem);

/**
 * The delay that the machine itself may add to a response: twice the longest of the control server, and at least this.
 */
const TOLERANCE_MS = 75;
const toleranceOf = ({ longestControlMs }: Pick<Figures, "longestControlMs">) =>
  Math.max(TOLERANCE_MS, 2 * longestControlMs);

/** No data is lost, nothing is done twice, and every request succeeds in the end. */
export const ALWAYS: readonly Expectation[] = [
  ({ creates: { lost } }) => unless(lost.length === 0, `${lost.length} acknowledged creates are lost`),
  ({ creates: { duplicated } }) =>
    unless(duplicated.length === 0, `${duplicated.length} creates were done twice`),
  ({ failed: [first, ...others] }) =>
    unless(first === undefined, `failed after all retries: ${first} and ${others.length} others`),
];

/** If a server stands still for this long in a transaction, PostgreSQL ends it. */
const STALL_MS = 500;

export function onlyErrors(...allowed: readonly string[]): Expectation {
  return ({ errors, causes, ...figures }) => {
    const due = toleranceOf(figures) > STALL_MS ? [...allowed, "503 unavailable"] : allowed;
    const others = Object.entries(errors).filter(([error]) => !due.includes(error));
    const why = causes.length === 0 ? "" : ` (${causes.join("; ")})`;
    const list = countTexts(Object.fromEntries(others)).join(", ");
    return unless(others.length === 0, `unexpected errors: ${list}${why}`);
  };
}

export const retryAfterPresent: Expectation = ({ withoutRetryAfter }) =>
  unless(withoutRetryAfter === 0, `${withoutRetryAfter} responses of 503 had no Retry-After`);

export function respondsWithin(ms: number): Expectation {
  return (figures) => {
    const [longest, tolerance] = [figures.longestMs, toleranceOf(figures)];
    return unless(
      longest <= ms + tolerance,
      `the longest response took ${Math.round(longest)} ms, more than ${Math.round(ms)} with a tolerance of ${Math.round(tolerance)}`,
    );
  };
}

/** A server that knows that its database is unavailable responds at once. */
export function failsFastWithin(ms: number): Expectation {
  return (figures) => {
    const { longestFailFastMs: longest } = figures;
    if (longest === undefined) return "no request was rejected";
    return unless(
      longest <= ms + toleranceOf(figures),
      `a 503 took ${Math.round(longest)} ms, more than ${ms}`,
    );
  };
}

export function recoversWithin(ms: number): Expectation {
  return (figures) => {
    const { recoveryMs } = figures;
    if (recoveryMs === undefined) return "no server noticed the fault";
    const most = ms + toleranceOf(figures);
    return unless(
      recoveryMs <= most,
      `recovered only after ${Math.round(recoveryMs)} ms, more than ${Math.round(most)}`,
    );
  };
}

/** Each server logs one message for each cause while the fault lasts. */
export function loggedEachCauseOnce(database: Database): Expectation {
  return ({ outages, servers }) => {
    const { expected } = outages[database];
    const problem = `${servers} servers logged ${expected} times that ${database} is unavailable`;
    return unless(expected >= servers && expected <= MAX_CAUSES * servers, problem);
  };
}
