import { availableParallelism } from "node:os";
import { join } from "node:path";
import { beginBurst, rateLimitStatus, sendBurst } from "../harness/api-client.ts";
import { runProgram } from "../harness/child.ts";
import type { Fleet } from "../harness/fleet.ts";
import type { Server } from "../harness/server.ts";
import { countsOf, countTexts } from "../harness/statistics.ts";
import { outageLines } from "./figures.ts";
import type { Findings } from "./scenario.ts";

/** The limit of the Free plan. */
const PER_MINUTE = 60;
const BURSTS = 5;

/** Checks that without Valkey, all servers allow the limit of an unused key together, and reject an exceeded one. */
export async function limitsWithoutValkey(fleet: Fleet): Promise<() => Promise<Findings>> {
  const { key: exceededKey } = await fleet.createKey("free");
  const { key: unusedKey } = await fleet.createKey("free");
  for (const url of fleet.urls) while ((await rateLimitStatus(url, exceededKey)).status === 200);
  return async () => {
    const [exceeded, unused] = [await countAllowed(fleet, exceededKey), await countAllowed(fleet, unusedKey)];
    const servers = fleet.urls.length;
    const note = `a Free key over its limit was allowed ${exceeded} more requests, an unused one ${unused}`;
    const isKept = exceeded === 0 && unused === PER_MINUTE;
    return { notes: [`${note} on ${servers} servers`], problems: isKept ? [] : [note] };
  };
}

/** Sends slightly more requests than the limit to every server, and counts those that were allowed. */
async function countAllowed(fleet: Fleet, key: string): Promise<number> {
  let allowed = 0;
  for (const url of fleet.urls) {
    for (let sent = 0; sent < PER_MINUTE + 5; sent++) {
      if ((await rateLimitStatus(url, key)).status === 200) allowed++;
    }
  }
  return allowed;
}

/**
 * Checks that all servers together allow 60 requests of each burst. There are five bursts, and more while `isWanted`.
 * If servers may have noticed an outage of Valkey, they allow up to twice as many.
 */
export async function checkBursts(
  fleet: Fleet,
  requests = 2_000,
  isWanted = () => false,
  mayBeOutage = async () => false,
): Promise<Findings> {
  const allowed: number[] = [];
  while (allowed.length < BURSTS || isWanted()) {
    const { key } = await fleet.createKey("free");
    const responses = await sendBurst(fleet.ports, key, requests);
    allowed.push(responses.filter(({ status }) => status === 200).length);
  }
  const outages = outageLines(fleet.logs.flat(), "Valkey").length;
  const counts = countTexts(countsOf(allowed.map(String)));
  const note = `of ${requests} concurrent requests on a Free key, allowed: ${counts.join(", ")}`;
  const most = (await mayBeOutage()) ? 2 * PER_MINUTE : PER_MINUTE;
  const isKept =
    (outages === 0 || most > PER_MINUTE) && allowed.every((count) => count >= PER_MINUTE && count <= most);
  const notes = [`${note}; Valkey was logged as unavailable ${outages} ×`];
  return { notes, problems: isKept ? [] : notes };
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

const PAUSES = 100;
/** The default of --limits-timeout, less a tick of its timer. */
const LIMITS_TIMEOUT_MS = 450;
const PAUSE_VALKEY = join(import.meta.dir, "pause-valkey.ts");

/** Sends bursts while Valkey is paused for two thirds of the time. */
export async function checkPauses(fleet: Fleet, valkey: Server, seed: number): Promise<Findings> {
  const command = [process.execPath, PAUSE_VALKEY, valkey.url, `${valkey.pid}`, `${PAUSES}`, `${seed}`];
  let isPausing = true;
  const pausing = runProgram(command).finally(() => {
    isPausing = false;
  });
  // On a busy machine Valkey may need longer to continue than servers wait for it.
  const mayBeOutage = async () => Number((await pausing).out) > LIMITS_TIMEOUT_MS;
  const { notes, problems } = await checkBursts(fleet, 400, () => isPausing, mayBeOutage);
  const { code, out, err } = await pausing;
  if (code !== 0) throw new Error(`the program that pauses Valkey failed: ${err}`);
  return {
    notes: notes.map((note) => `${note}; ${PAUSES} pauses, the longest ${out.trim()} ms, seed ${seed}`),
    problems,
  };
}

/** Runs the check while one process per core only computes. */
export async function withBusyCores(check: () => Promise<Findings>): Promise<Findings> {
  await using busy = new AsyncDisposableStack();
  for (let core = 0; core < availableParallelism(); core++)
    busy.use(Bun.spawn([process.execPath, "-e", "for (;;);"], { stdio: ["ignore", "ignore", "ignore"] }));
  return await check();
}

/** Checks a window that ends during the outage, and another that begins during it and outlives it. */
export async function checkWindowEnd(fleet: Fleet, valkey: Server): Promise<Findings> {
  const { key } = await fleet.createKey("free");
  const endsAt = performance.now() + 60_000;
  const first = await countAllowed(fleet, key);
  valkey.freeze();
  const during = await countAllowed(fleet, key);
  await Bun.sleep(endsAt + 1_000 - performance.now());
  const next = await countAllowed(fleet, key);
  valkey.thaw();
  await Bun.sleep(1_000);
  const after = await countAllowed(fleet, key);
  const note = `a Free key got ${first}, in the outage ${during}, in the next window ${next}, and ${after} after the outage`;
  const isKept = first === PER_MINUTE && during === 0 && next >= PER_MINUTE;
  const most = PER_MINUTE + fleet.urls.length;
  return { notes: [note], problems: isKept && next + after <= most ? [] : [note] };
}
