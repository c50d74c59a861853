import type { LogLine } from "../../harness/petstore.ts";
import type { Outcome } from "../../harness/trials.ts";
import { Clients } from "./clients.ts";
import { Deployment, TOKEN } from "./deployment.ts";
import { disturbanceText, type Ending, type History, type Operation } from "./history.ts";
import { judge } from "./judge.ts";
import { startMonitor } from "./monitor.ts";
import { findUndelivered, lastEntry } from "./webhook.ts";
import { Recorder } from "./recorder.ts";
import { drawSchedule, type Schedule, scheduleText, SERVERS, stepsOf } from "./schedule.ts";

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
  const history = await play(deployment, schedule).finally(() => deployment.stop());
  const problems = judge(history);
  if (problems.length === 0) return { problems, note: noteOf(history) };
  const disturbances = history.disturbances.toSorted((a, b) => a.from - b.from).map(disturbanceText);
  return { problems: ["", ...problems, ...disturbances].map((line) => `\n    ${line}`) };
}

async function play(deployment: Deployment, schedule: Schedule): Promise<History> {
  const recorder = new Recorder(deployment);
  const { now } = recorder;
  const entriesBefore = await lastEntry(deployment.primaryUrl);
  const monitor = startMonitor(deployment, now);
  const pauses = schedule.faults.some(({ name }) => name === "server-paused");
  const clients = new Clients(recorder, schedule.seed, ROOT, pauses);
  await clients.prepare();
  const lastAt = stepsOf(schedule).at(-1)?.at ?? 0;
  let isInjected = false;
  const injecting = deployment.inject(schedule, now).then(() => (isInjected = true));
  const isOver = () => isInjected && now() > lastAt + CALM_MS;
  const isLate = () => isInjected && now() > lastAt + CALM_MS + REPEAT_MS;
  await Promise.all([clients.work(isOver, isLate), injecting]);
  await monitor.stop();
  const endings: Ending[] = [];
  for (let server = 1; server <= SERVERS; server++) endings.push(await clients.ending(server));
  const undelivered = await findUndelivered(deployment, entriesBefore);
  const operations = withReasons(recorder.operations, deployment.fleet.logs.flat());
  const { limits, expiries } = clients;
  const { disturbances, clocks, failures, mayBeLostUntil } = deployment;
  return {
    operations,
    limits,
    expiries,
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

function noteOf({ operations, disturbances }: History): string {
  const seconds = Math.max(...operations.map(({ endedAt }) => endedAt)) / 1_000;
  const slow = disturbances.filter(({ what }) => what === "is slow").length;
  return `as promised, ${operations.length} operations in ${seconds.toFixed(1)} s, ${slow} slow replies`;
}
