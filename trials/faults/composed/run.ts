import type { LogLine } from "../../harness/petstore.ts";
import type { Outcome } from "../../harness/trials.ts";
import { Clients } from "./clients.ts";
import { Deployment, TOKEN } from "./deployment.ts";
import { disturbanceText, type Ending, type History, type Operation } from "./history.ts";
import type { Played } from "./played.ts";
import { judge } from "./judge.ts";
import { startMonitor } from "./monitor.ts";
import { findUndelivered, lastEntry } from "./webhook.ts";
import { Recorder } from "./recorder.ts";
import { drawSchedule, type Schedule, scheduleText, SERVERS } from "./schedule.ts";

/** The shortest time of load without a fault, after the last one. */
const CALM_MS = 2_500;
/** How long clients repeat what was not acknowledged. */
const REPEAT_MS = 6_000;
const ROOT = { name: "operator of all servers", secret: TOKEN, id: "", isOperator: true };

/** The trial of one seed with composed faults. */
export function composedTrial(seed: number) {
  const schedule = drawSchedule(seed);
  return { title: `seed ${seed}: ${scheduleText(schedule)}`, schedule };
}

export async function runComposed({ schedule }: { schedule: Schedule }): Promise<Outcome<never>> {
  const deployment = await Deployment.start(schedule);
  const { seed, faults } = schedule;
  const pauses = faults.some(({ name }) => name === "server-paused");
  const inject = (now: () => number) => deployment.inject(schedule, now);
  const history = await play(deployment, { seed, pauses, inject }).finally(() => deployment.stop());
  return outcomeOf(history);
}

interface Play {
  readonly seed: number;
  /** Whether a server is paused. */
  readonly pauses?: boolean;
  /** Injects the faults. Resolves when they are over. */
  inject(now: () => number): Promise<void>;
}

/** Lets clients and operators use the deployment while faults are injected. The servers have the token of `TOKEN`. */
export async function play(deployment: Played, { seed, pauses = false, inject }: Play): Promise<History> {
  const recorder = new Recorder(deployment);
  const { now } = recorder;
  const entriesBefore = await lastEntry(deployment.primaryUrl);
  const monitor = startMonitor(deployment, now);
  const clients = new Clients(recorder, seed, ROOT, pauses);
  await clients.prepare();
  let injectedAt = Infinity;
  const injecting = inject(now).finally(() => (injectedAt = now()));
  const isOver = () => now() > injectedAt + CALM_MS;
  const isLate = () => now() > injectedAt + CALM_MS + REPEAT_MS;
  await Promise.all([clients.work(isOver, isLate), injecting]);
  await monitor.stop();
  const endings: Ending[] = [];
  for (let server = 1; server <= SERVERS; server++) endings.push(await clients.ending(server));
  const undelivered = await findUndelivered(deployment, entriesBefore);
  const operations = withReasons(recorder.operations, deployment.fleet.logs.flat());
  const { disturbances, clocks = [], failures, mayBeLostUntil } = deployment;
  return {
    operations,
    limits: clients.limits,
    expiries: clients.expiries,
    disturbances,
    clocks,
    endings,
    undelivered,
    mayBeLostUntil,
    failures,
  };
}

/** Adds to each 503 response why the server gave it, as its log says. */
function withReasons(operations: readonly Operation[], log: readonly LogLine[]): readonly Operation[] {
  const lines = log.filter(({ event }) => event === "request.unavailable");
  const reasons = new Map(
    lines.map(({ text }) => {
      const { requestId, reason }: Record<string, unknown> = JSON.parse(text);
      return [String(requestId), String(reason)];
    }),
  );
  return operations.map((each) =>
    each.status === 503 ? { ...each, reason: reasons.get(each.requestId ?? "") } : each,
  );
}

export function outcomeOf(history: History): Outcome<never> {
  const problems = judge(history);
  if (problems.length === 0) return { problems, note: noteOf(history) };
  const disturbances = history.disturbances.toSorted((a, b) => a.from - b.from).map(disturbanceText);
  return { problems: ["", ...problems, ...disturbances].map((line) => `\n    ${line}`) };
}

function noteOf({ operations, disturbances }: History): string {
  const seconds = Math.max(...operations.map(({ endedAt }) => endedAt)) / 1_000;
  const slow = disturbances.filter(({ what }) => what === "is slow").length;
  return `as promised, ${operations.length} operations in ${seconds.toFixed(1)} s, ${slow} slow replies`;
}
