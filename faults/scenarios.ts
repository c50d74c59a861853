import { UNLIMITED_PER_MINUTE } from "../harness/petstore.ts";
import { sendToValkey } from "../harness/valkey.ts";
import * as deployments from "./deployments.ts";
import * as expect from "./expectations.ts";
import * as checks from "./rate-limit-checks.ts";
import type { Experiment, Scenario } from "./scenario.ts";

type Deployed = Awaited<ReturnType<typeof deployments.startDeployment>>;
type Fault = Pick<Experiment, "inject" | "check" | "repair">;

/** The fault on two servers with PostgreSQL and Valkey, unless another number is given. */
function on(faultOf: (deployed: Deployed) => Fault | Promise<Fault>, servers = 2) {
  return async (): Promise<Experiment> => {
    const deployed = await deployments.startDeployment(servers);
    return { ...deployed, ...(await faultOf(deployed)) };
  };
}

const nothing = async () => {};

const NO_ERRORS = [...expect.ALWAYS, expect.onlyErrors()];
const NOT_NOTICED = [...NO_ERRORS, expect.respondsWithin(25), expect.notNoticed];
const VALKEY_UNAVAILABLE = [
  ...NO_ERRORS,
  expect.respondsWithin(25),
  expect.loggedOnce("Valkey"),
  expect.recoversWithin(1_000),
];
const ONLY_503 = [
  ...expect.ALWAYS,
  expect.onlyErrors("503 unavailable"),
  expect.retryAfterPresent,
  expect.recoversWithin(1_000),
];
/** The longest that a server waits for a query, before it can know that PostgreSQL is unavailable. */
const QUERY_TIMEOUT_MS = 2_000;
const POSTGRES_RESTARTED = [...ONLY_503, expect.respondsWithin(QUERY_TIMEOUT_MS)];
const POSTGRES_UNAVAILABLE = [
  ...POSTGRES_RESTARTED,
  expect.failsFastWithin(50),
  expect.loggedOnce("PostgreSQL"),
];
/** Servers that start take processor time from the others, so the response time only has to show that none hangs. */
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
    prepare: on(() => ({ inject: nothing })),
    expectations: NO_ERRORS,
  },
  {
    name: "burst",
    title: "five bursts of 2,000 concurrent requests on a Free key, over four servers",
    prepare: on(({ fleet }) => ({ inject: nothing, check: () => checks.checkBursts(fleet) }), 4),
    expectations: NO_ERRORS,
  },
  {
    name: "valkey-frozen",
    title: "Valkey frozen (SIGSTOP) for 4 s",
    durationMs: 4_000,
    prepare: on(async ({ fleet, valkey }) => ({
      inject: async () => valkey.freeze(),
      check: await checks.limitsWithoutValkey(fleet),
      repair: async () => valkey.thaw(),
    })),
    expectations: VALKEY_UNAVAILABLE,
  },
  {
    name: "valkey-killed",
    title: "Valkey killed, started again empty 4 s later",
    durationMs: 4_000,
    prepare: on(async ({ fleet, valkey }) => ({
      inject: valkey.kill,
      check: await checks.limitsWithoutValkey(fleet),
      repair: valkey.restart,
    })),
    expectations: VALKEY_UNAVAILABLE,
  },
  {
    name: "script-flush",
    title: "Valkey loses its scripts (SCRIPT FLUSH)",
    prepare: on(({ valkey }) => ({ inject: () => sendToValkey(valkey.url, "SCRIPT", "FLUSH") })),
    expectations: NOT_NOTICED,
  },
  {
    name: "flushall",
    title: "Valkey loses its data (FLUSHALL)",
    prepare: on(({ valkey }) => ({ inject: () => sendToValkey(valkey.url, "FLUSHALL") })),
    expectations: NOT_NOTICED,
  },
  {
    name: "cluster-node-lost",
    title: "one of three Valkey nodes killed, started again 4 s later",
    durationMs: 4_000,
    async prepare() {
      const deployed = await deployments.startClusterDeployment();
      const node = await deployed.nodeOfLoad();
      const repair = () => node.restart().then(deployed.untilServing);
      return { ...deployed, inject: node.kill, repair };
    },
    expectations: VALKEY_UNAVAILABLE,
  },
  {
    name: "postgres-frozen",
    title: "PostgreSQL frozen (SIGSTOP) for 5 s",
    durationMs: 5_000,
    prepare: on(({ fleet, postgres }) => ({
      inject: async () => postgres.freeze(),
      check: (key) => checks.checkVerifiedKey(fleet, key, UNLIMITED_PER_MINUTE),
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
      check: (key) => checks.checkVerifiedKey(fleet, key, UNLIMITED_PER_MINUTE),
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
    unsupported: deployments.smallDiskUnsupported,
    prepare: deployments.startSmallDiskDeployment,
    expectations: [...ONLY_503, expect.respondsWithin(50)],
  },
];
