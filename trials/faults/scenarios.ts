import { rmSync } from "node:fs";
import { rateLimitStatus } from "../harness/api-client.ts";
import { runProgram } from "../harness/child.ts";
import { temporaryDirectory } from "../harness/cleanup.ts";
import { Fleet, startStores } from "../harness/fleet.ts";
import { adminFlags, succeed, UNLIMITED_PER_MINUTE } from "../harness/petstore.ts";
import { promote, startStandby } from "../harness/postgres.ts";
import * as expect from "./figures.ts";
import { checkBursts, checkBurstsWithFaults, withBusyCores } from "./limits.ts";
import type { Experiment, Findings, Scenario } from "./scenario.ts";

type Deployed = Awaited<ReturnType<typeof startDeployment>>;
type Fault = Pick<Experiment, "inject" | "check" | "repair" | "finish">;

/** Prepares a fault on servers with PostgreSQL, two by default. */
function on(faultOf: (deployed: Deployed, seed: number) => Fault | Promise<Fault>, servers = 2) {
  return async (seed: number): Promise<Experiment> => {
    const deployed = await startDeployment(servers);
    return { ...deployed, ...(await faultOf(deployed, seed)) };
  };
}

const NO_ERRORS = [...expect.ALWAYS, expect.onlyErrors()];
const ONLY_503 = [
  ...expect.ALWAYS,
  expect.onlyErrors("503 unavailable"),
  expect.retryAfterPresent,
  expect.recoversWithin(1_000),
];
const POSTGRES_RESTARTED = [...ONLY_503, expect.respondsWithin(expect.QUERY_TIMEOUT_MS)];
const POSTGRES_UNAVAILABLE = [
  ...POSTGRES_RESTARTED,
  expect.failsFastWithin(50),
  expect.loggedEachCauseOnce("PostgreSQL"),
];
/**
 * The expectations when servers stop. Servers that start take processor time from the others, so the response time only
 * has to show that none hangs.
 */
const SERVER_STOPPED = [
  ...expect.ALWAYS,
  expect.onlyErrors("no connection", "409 idempotency_conflict"),
  expect.respondsWithin(1_000),
];

export const SCENARIOS: readonly Scenario[] = [
  {
    name: "healthy",
    title: "no fault",
    durationMs: 4_000,
    prepare: on(() => ({})),
    expectations: NO_ERRORS,
  },
  {
    name: "burst",
    title: "five bursts of 2,000 concurrent requests on a Free key, over four servers",
    prepare: on(({ fleet }) => ({ check: () => checkBursts(fleet) }), 4),
    expectations: NO_ERRORS,
  },
  ...[2, 3, 8].map((servers) => ({
    name: `burst-${servers}`,
    title: `50 bursts over ${servers} servers, one of which is paused, killed and started again`,
    prepare: on(({ fleet }) => ({ check: () => checkBurstsWithFaults(fleet) }), servers),
    expectations: [
      ...expect.ALWAYS,
      expect.onlyErrors("no connection", "409 idempotency_conflict", "503 unavailable"),
    ],
  })),
  {
    name: "busy",
    title: "five bursts of 400 while every core is busy with other work",
    prepare: on(({ fleet }) => ({ check: () => withBusyCores(() => checkBursts(fleet, 400)) }), 4),
    // PostgreSQL may take longer than its timeout.
    expectations: [...expect.ALWAYS, expect.onlyErrors("503 unavailable")],
  },
  {
    name: "postgres-frozen",
    title: "PostgreSQL frozen (SIGSTOP) for 5 s",
    durationMs: 5_000,
    prepare: on(({ fleet, postgres }) => ({
      inject: async () => postgres.freeze(),
      check: (key) => checkVerifiedKey(fleet, key),
      repair: async () => postgres.thaw(),
    })),
    expectations: POSTGRES_UNAVAILABLE,
  },
  {
    name: "postgres-killed",
    title: "PostgreSQL killed, started again 3 s later",
    durationMs: 3_000,
    prepare: on(({ fleet, postgres }) => ({
      inject: postgres.kill,
      check: (key) => checkVerifiedKey(fleet, key),
      repair: postgres.restart,
    })),
    expectations: POSTGRES_UNAVAILABLE,
  },
  {
    name: "postgres-restarted",
    title: "PostgreSQL restarted",
    prepare: on(({ postgres }) => ({ inject: postgres.restart })),
    expectations: POSTGRES_RESTARTED,
  },
  {
    name: "postgres-promoted",
    title: "PostgreSQL killed, its synchronous standby promoted 3 s later",
    durationMs: 3_000,
    prepare: startReplicatedDeployment,
    expectations: POSTGRES_UNAVAILABLE,
  },
  {
    name: "rolling-restart",
    title: "four servers restarted one by one, three times",
    prepare: on(({ fleet }) => {
      const servers = [...fleet.urls.keys()];
      const inject = async () => {
        for (const index of [...servers, ...servers, ...servers]) {
          const code = await fleet.stopServer(index);
          if (code !== 0) throw new Error(`a server ended with ${code}`);
          await fleet.startServer(index);
        }
      };
      return { inject };
    }, 4),
    expectations: SERVER_STOPPED,
  },
  {
    name: "server-killed",
    title: "one of two servers killed (SIGKILL), started again 3 s later",
    durationMs: 3_000,
    prepare: on(({ fleet }) => ({
      inject: () => fleet.stopServer(0, "SIGKILL"),
      repair: () => fleet.startServer(0),
    })),
    expectations: SERVER_STOPPED,
  },
  {
    name: "disk-full",
    title: "SQLite's disk full for 4 s",
    durationMs: 4_000,
    unsupported: () =>
      process.getuid?.() === 0 && Bun.which("unshare") ? undefined : "only root can mount a small disk",
    prepare: startSmallDiskDeployment,
    expectations: [...ONLY_503, expect.respondsWithin(50)],
  },
];

/** Petstore servers and the database that they use. */
async function startDeployment(servers: number) {
  const { postgres, storage } = await startStores();
  const fleet = await Fleet.start({ size: servers, storage });
  const stop = () => stopAll(fleet, postgres);
  return { fleet, postgres, stop };
}

/** Starts servers that know the addresses of both databases, in the order of use. */
async function startReplicatedDeployment(): Promise<Experiment> {
  const { postgres: primary } = await startStores();
  const standby = await startStandby(primary);
  const both = primary.url.replace(/(?=\/postgres$)/, `,${new URL(standby.url).host}`);
  const fleet = await Fleet.start({ size: 2, storage: ["--database-url", both] });
  return {
    fleet,
    inject: primary.kill,
    repair: () => promote(standby),
    stop: () => stopAll(fleet, standby),
  };
}

/** Stops the fleet first, because it would log errors without its databases. */
async function stopAll(fleet: Fleet, ...databases: { stop(): Promise<void> }[]): Promise<void> {
  await fleet.stop();
  await Promise.all(databases.map((database) => database.stop()));
}

/** Starts one server on SQLite, on a disk in memory that is mounted for its process only and vanishes with it. */
async function startSmallDiskDeployment() {
  const path = temporaryDirectory("disk");
  const flags = adminFlags("the-token-of-the-server-on-a-small-disk");
  const token = flags.slice(-2);
  const fleet = await Fleet.start({
    size: 1,
    storage: ["--data", path],
    // Commands on keys cannot access the disk, so the load uses the first key.
    flags,
    under: () => [
      "unshare",
      "--mount",
      "sh",
      "-c",
      'mount -t tmpfs -o size=24m tmpfs "$0" && exec "$@"',
      path,
    ],
  });
  const [server] = fleet.servers;
  const filler = `/proc/${server?.pid}/root${path}/filler`;
  const limits = ["--per-minute", "1000000", "--per-day", "100000000"];
  await succeed("plans", "update", "free", ...limits, "--server", server?.adminUrl ?? "", ...token);
  return {
    fleet,
    key: server?.key ?? "",
    // The program ends when the disk is full.
    inject: () => runProgram(["dd", "if=/dev/zero", `of=${filler}`, "bs=4k"]),
    repair: async () => rmSync(filler),
    stop: () => stopAll(fleet),
  };
}

/** Without PostgreSQL, a verified key is still recognized: the response is 503, with the key's own limit. */
async function checkVerifiedKey(fleet: Fleet, key: string): Promise<Findings> {
  const statuses = await Promise.all(fleet.urls.map((url) => rateLimitStatus(url, key)));
  const isRecognised = statuses.every(
    ({ code, limit }) => code === "unavailable" && limit === UNLIMITED_PER_MINUTE,
  );
  return isRecognised
    ? { notes: ["a verified key gets 503, with its own limit"], problems: [] }
    : { notes: [], problems: [`a verified key gets ${JSON.stringify(statuses)}`] };
}
