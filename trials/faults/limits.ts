import { availableParallelism } from "node:os";
import { beginBurst, sendBurst } from "../harness/api-client.ts";
import type { Fleet } from "../harness/fleet.ts";
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

const KILL_BURSTS = 50;

/**
 * Checks that each of 50 bursts is allowed 60 requests, although a server is killed in the middle of one and starts
 * again in the middle of another. A request without a response may have been counted.
 */
export async function checkBurstsWithKill(fleet: Fleet): Promise<Findings> {
  const last = fleet.ports.length - 1;
  const [killAt, startAt] = [20, 35];
  const problems: string[] = [];
  let withoutResponse = 0;
  for (let burst = 0, ports = fleet.ports; burst < KILL_BURSTS; burst++) {
    const { key } = await fleet.createKey("free");
    const sent = await beginBurst(ports, key, 300);
    const settled = Promise.allSettled(sent);
    if (burst === killAt) await fleet.stopServer(last, "SIGKILL");
    if (burst === startAt) await fleet.startServer(last);
    ports = burst >= killAt && burst < startAt ? fleet.ports.slice(0, last) : fleet.ports;
    const results = await settled;
    const broken = results.filter(({ status }) => status === "rejected").length;
    const allowed = results.filter((each) => each.status === "fulfilled" && each.value.status === 200).length;
    withoutResponse += broken;
    if (allowed > PER_MINUTE || allowed + broken < PER_MINUTE)
      problems.push(`burst ${burst + 1}: ${allowed} allowed, ${broken} without a response`);
  }
  const note = `${KILL_BURSTS} bursts of 300 requests on a Free key each, ${withoutResponse} requests without a response`;
  return { notes: [note], problems };
}

/** Runs the check while one process per core only computes. */
export async function withBusyCores(check: () => Promise<Findings>): Promise<Findings> {
  await using busy = new AsyncDisposableStack();
  for (let core = 0; core < availableParallelism(); core++)
    busy.use(Bun.spawn([process.execPath, "-e", "for (;;);"], { stdio: ["ignore", "ignore", "ignore"] }));
  return await check();
}
