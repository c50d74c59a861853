import type { Audit } from "../test/instances/audit.ts";
import type { Fleet } from "../test/instances/fleet.ts";
import type { Attempt, Load } from "../test/instances/load.ts";
import type { LogLine } from "../test/instances/instance.ts";
import type { Control } from "./control.ts";
import type { Engine, Figures, Turns } from "./scenario.ts";

/** When it began and ended, by `performance.now()`. */
interface Fault {
  readonly begunAt: number;
  readonly endedAt: number;
}

export interface Played extends Fault {
  readonly load: Load;
  readonly fleet: Fleet;
  readonly kept: Audit;
  readonly notes: readonly string[];
  readonly control: Control;
}

/** What servers write when nothing is wrong. */
const ORDINARY = /^(?:serving|stopping|stopped)$/;
/** What they write at the turns. */
const AWAY = /^(?:Valkey|PostgreSQL) is away\b/;
const BACK = /^(?:Valkey|PostgreSQL) is back\b/;
/** A fault that is over in a moment is noticed by the next requests. */
const NOTICED_MS = 500;

export function measure(played: Played): Figures {
  const { load, fleet, kept, notes, control, begunAt, endedAt } = played;
  const { attempts } = load;
  const waits = attempts.map(waitOf).toSorted((a, b) => a - b);
  return {
    requests: attempts.length,
    errors: countOf(attempts.filter(isError).map(errorOf)),
    withoutRetryAfter: attempts.filter(({ status, retryAfterMs }) => status === 503 && retryAfterMs < 1_000)
      .length,
    failed: load.failures,
    medianMs: waits[waits.length >> 1] ?? 0,
    longestMs: longest(attempts.filter((attempt) => attempt.endedAt >= begunAt)) ?? 0,
    longestOfControlMs: control.longestSince(begunAt),
    longestKnownMs: longest(attempts.filter(isKnownToBeRefused(attempts, endedAt))),
    backAfterMs: backAfter(attempts, fleet, { begunAt, endedAt }),
    creates: {
      acknowledged: kept.acknowledged,
      lost: kept.lost.length,
      doubled: kept.doubled.length,
    },
    log: countOf(fleet.logs.flat().flatMap(({ event }) => (ORDINARY.test(event) ? [] : event))),
    turns: {
      PostgreSQL: turnsOf("PostgreSQL", fleet, { begunAt, endedAt }),
      Valkey: turnsOf("Valkey", fleet, { begunAt, endedAt }),
    },
    causes: causesOf(fleet),
    notes,
    servers: fleet.urls.length,
  };
}

const waitOf = ({ startedAt, endedAt }: Attempt) => endedAt - startedAt;
const wayOf = ({ member, kind }: Attempt) => `${member} ${kind === "create"}`;
const isError = ({ status }: Attempt) => status !== 200 && status !== 201;
const errorOf = ({ status, code }: Attempt) => (status === 0 ? `no ${code}` : `${status} ${code}`);

function longest(attempts: readonly Attempt[]): number | undefined {
  return attempts.length === 0 ? undefined : Math.max(...attempts.map(waitOf));
}

function countOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

/** Reads and creates reach the engine by ways of their own, and a server may find out about each at its own time. */
function isKnownToBeRefused(attempts: readonly Attempt[], endedAt: number): (attempt: Attempt) => boolean {
  const firstRefusals = new Map<string, number>();
  for (const attempt of attempts) {
    if (attempt.status !== 503) continue;
    firstRefusals.set(
      wayOf(attempt),
      Math.min(attempt.endedAt, firstRefusals.get(wayOf(attempt)) ?? Infinity),
    );
  }
  return (attempt) =>
    attempt.status === 503 &&
    attempt.startedAt > (firstRefusals.get(wayOf(attempt)) ?? Infinity) &&
    attempt.endedAt < endedAt;
}

/** A busy machine may keep an engine from answering for longer than it is waited for. */
function turnsOf(engine: Engine, fleet: Fleet, fault: Fault): Turns {
  const turns = fleet.logs.flat().filter(({ event }) => event.startsWith(`${engine} is away`));
  const atFault = turns.filter((line) => isAtFault(line, fault)).length;
  return { atFault, elsewhere: turns.length - atFault };
}

function isAtFault(line: LogLine, { begunAt, endedAt }: Fault): boolean {
  return timeOf(line) >= begunAt - 1 && timeOf(line) <= Math.max(endedAt, begunAt + NOTICED_MS);
}

/** Each message once. */
function causesOf(fleet: Fleet): string[] {
  const lines = fleet.logs.flat().filter(({ event }) => event === "unavailable");
  const messages = lines.flatMap(({ details }) => /"message":"([^"]*)"/.exec(details)?.[1] ?? []);
  return [...new Set(messages)];
}

/** By `performance.now()`, to the millisecond. */
const timeOf = ({ at }: LogLine) => at - performance.timeOrigin;

/** The last sign is an error, or the line of a server that it is over. Undefined where there was none at all. */
function backAfter(attempts: readonly Attempt[], fleet: Fleet, fault: Fault): number | undefined {
  const errors = attempts.filter(isError).map((each) => each.endedAt);
  const signs = [...errors, ...fleet.logs.flatMap((log) => backOf(log, fault) ?? [])];
  return signs.length === 0 ? undefined : Math.max(0, Math.max(...signs) - fault.endedAt);
}

/** When a server that lost an engine by the fault had it again. */
function backOf(log: readonly LogLine[], fault: Fault): number | undefined {
  if (!log.some((line) => AWAY.test(line.event) && isAtFault(line, fault))) return undefined;
  const backs = log.filter(({ event }) => BACK.test(event)).map(timeOf);
  return backs.find((at) => at >= fault.endedAt - 1);
}
