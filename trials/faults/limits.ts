import { availableParallelism } from "node:os";
import { beginBurst, sendBurst } from "../harness/api-client.ts";
import type { Fleet } from "../harness/fleet.ts";
import { freezeTree, thawTree } from "../harness/processes.ts";
import { countsOf, countTexts } from "../harness/statistics.ts";
import type { Findings } from "./scenario.ts";

/** The limit of the Free plan. */
const PER_MINUTE = 60;
const BURSTS = 5;

/** Checks that all servers together allow 60 requests of each of five bursts. */
export async function checkBursts(fleet: Fleet, requests = 2_000): Promise<Findings> {
  const allowed: number[] = [];
  while (allowed.length < BURSTS) {
    const { key } = await fleet.createKey("free");
    const responses = await sendBurst(fleet.ports, key, requests);
    allowed.push(responses.filter(({ status }) => status === 200).length);
  }
  const counts = countTexts(countsOf(allowed.map(String)));
  const notes = [`of ${requests} concurrent requests on a Free key, allowed: ${counts.join(", ")}`];
  return { notes, problems: allowed.every((count) => count === PER_MINUTE) ? [] : notes };
}

const FAULT_BURSTS = 50;

const PAUSE_MS = 3_000;

/**
 * Checks that each of 50 bursts is allowed 60 requests, although a server stands still for 3 s in one of them, is
 * killed in the middle of another and starts again in the middle of a third. A request without a response may have been
 * counted, and so may one that the paused server answers with 503.
 */
export async function checkBurstsWithFaults(fleet: Fleet): Promise<Findings> {
  const last = fleet.ports.length - 1;
  const [pauseAt, killAt, startAt] = [10, 20, 35];
  const problems: string[] = [];
  let unknown = 0;
  for (let burst = 0, ports = fleet.ports; burst < FAULT_BURSTS; burst++) {
    const { key } = await fleet.createKey("free");
    const sent = await beginBurst(ports, key, 300);
    const settled = Promise.allSettled(sent);
    if (burst === pauseAt) await pause(fleet.pids[last]);
    if (burst === killAt) await fleet.stopServer(last, "SIGKILL");
    if (burst === startAt) await fleet.startServer(last);
    ports = burst >= killAt && burst < startAt ? fleet.ports.slice(0, last) : fleet.ports;
    const results = await settled;
    const broken = results.filter((each) => each.status === "rejected" || each.value.status === 503).length;
    const allowed = results.filter((each) => each.status === "fulfilled" && each.value.status === 200).length;
    unknown += broken;
    if (allowed > PER_MINUTE || allowed + broken < PER_MINUTE)
      problems.push(`burst ${burst + 1}: ${allowed} allowed, ${broken} without a decision`);
  }
  const note = `${FAULT_BURSTS} bursts of 300 requests on a Free key each, ${unknown} requests without a decision`;
  return { notes: [note], problems };
}

async function pause(pid = 0): Promise<void> {
  freezeTree(pid);
  await Bun.sleep(PAUSE_MS);
  thawTree(pid);
}

/** Runs the check while one process per core only computes. */
export async function withBusyCores(check: () => Promise<Findings>): Promise<Findings> {
  await using busy = new AsyncDisposableStack();
  for (let core = 0; core < availableParallelism(); core++)
    busy.use(Bun.spawn([process.execPath, "-e", "for (;;);"], { stdio: ["ignore", "ignore", "ignore"] }));
  return await check();
}
