import { integer, isGiven, names, type parseFlags, text } from "../trials/harness/command-line.ts";
import {
  type CandidateId,
  PEERS,
  WORKLOADS,
  type Workload,
  type WorkloadId,
  workloadOf,
} from "./workloads.ts";

/** The measurements besides the workloads. */
const SECTIONS = ["paced", "growth", "shared", "disk", "limiter"] as const;
type Section = (typeof SECTIONS)[number];

const WORKLOAD_IDS = WORKLOADS.map(({ id }) => id);
/** The default workloads, which most clients send. They have five rounds and, except for get, the peers. */
const DECISIVE: readonly WorkloadId[] = ["list", "get", "create-32", "mix"];
/** Further default workloads with a target, which are compared with the bare route only. */
const OTHERS: readonly WorkloadId[] = ["deep", "401", "401-unknown", "429"];
const SECONDS = 2;
const ROUNDS = 5;
const OTHER_ROUNDS = 3;
/**
 * The number of rounds for those, which exceed their targets by far, and for the shared stores, whose rounds are long.
 */
const FEW_ROUNDS = 2;
const MAX_SECONDS = 60;
const MAX_ROUNDS = 51;

export const HELP = `Usage: npm run bench [-- OPTIONS]

Measures Petstore against a bare Bun.serve route and peers in one run: interleaved rounds, server and load on different
cores, ratios as the result. Needs wrk. By default it measures what the targets need, in 15 minutes: ${DECISIVE.join(", ")}
in five rounds with the peers, everything else in two or three.

  --full           All workloads with the peers in five rounds, and the rate limiter alone; 30 minutes
  --only LIST      Workloads and sections, by name, with commas between
                   workloads: ${WORKLOAD_IDS.join(", ")}
                   sections: ${SECTIONS.join(", ")}
  --peers LIST     none, or some of ${PEERS.join(", ")} (default: all of them)
  --against DIR    Another checkout or release, which the section disk measures, too
  --seconds N      Length of a round, 1 to ${MAX_SECONDS} (default: ${SECONDS})
  --rounds N       Number of rounds, 1 to ${MAX_ROUNDS}
  --json FILE      Where the figures are written (default: bench/results.json); the chart goes next to it as .svg
  --docs           With --full: also write the figures to bench/results.md, the summary and the chart to docs/performance.md
  --from FILE      Measure nothing: report the figures that an earlier run wrote
  --check          Exit with 1 if a target is missed
  --help           Show this
`;

export const FLAGS = {
  only: names([...WORKLOAD_IDS, ...SECTIONS]),
  peers: names([...PEERS, "none"]),
  seconds: integer(SECONDS, MAX_SECONDS),
  rounds: integer(undefined, MAX_ROUNDS),
  against: text,
  json: text,
  from: text,
  full: isGiven,
  docs: isGiven,
  check: isGiven,
} as const;

/** One workload, the servers that are measured with it, and the number of rounds. */
export interface PlannedLoad {
  readonly workload: WorkloadId;
  /** The names of the servers. */
  readonly servers: readonly string[];
  readonly rounds: number;
}

export type Plan = ReturnType<typeof planOf>;

export const WARM_UP_SECONDS = 2;
export const PACED = {
  workloads: ["list", "get", "mix"] as readonly WorkloadId[],
  servers: ["bare", "ours"] as readonly CandidateId[],
  /**
   * The warm-up lasts until the compiler has compiled even what one request in a hundred needs. The compiler shares the
   * server's core, and its time would determine p99.
   */
  firstWarmUpSeconds: 30,
  trialSeconds: 1,
} as const;

export function planOf(flags: ReturnType<typeof parseFlags<typeof FLAGS>>) {
  const { only, peers: chosenPeers = PEERS, full } = flags;
  const isDefault = only === undefined && !full;
  const isChosen = (name: WorkloadId | Section) => only?.includes(name) ?? true;
  const sections = isDefault ? SECTIONS.slice(0, 4) : SECTIONS.filter(isChosen);
  const chosen = isDefault ? [...DECISIVE, ...OTHERS] : WORKLOAD_IDS.filter(isChosen);
  // This needs half of the load that saturates Petstore.
  const workloads = chosen.length === 0 && sections.includes("paced") ? PACED.workloads : chosen;
  const peers = PEERS.filter((id) => chosenPeers.includes(id));
  const ids: CandidateId[] = ["bare", "ours", ...peers];
  const rounds = flags.rounds ?? ROUNDS;
  const otherRounds = flags.rounds ?? (full ? ROUNDS : OTHER_ROUNDS);
  return {
    peers,
    seconds: flags.seconds,
    rounds,
    otherRounds,
    ids,
    loads: workloads.map((workload): PlannedLoad => {
      const isReduced = isDefault && OTHERS.includes(workload);
      const withPeers = !isReduced && !(isDefault && workload === "get");
      const servers = withPeers ? ids : ["bare", "ours"];
      return { workload, servers, rounds: isReduced ? Math.min(rounds, FEW_ROUNDS) : rounds };
    }),
    paced: sections.includes("paced") ? PACED.workloads.filter((id) => workloads.includes(id)) : [],
    growth: {
      sizes: !sections.includes("growth") ? [] : [1_000, ...(isDefault ? [] : [100_000]), 10_000_000],
      workloads: (isDefault ? ["list", "create-32"] : ["list", "deep", "create-32"]) as readonly WorkloadId[],
    },
    sharedRounds: sections.includes("shared") ? Math.min(otherRounds, FEW_ROUNDS) : 0,
    diskRounds: sections.includes("disk") ? Math.min(otherRounds, FEW_ROUNDS) : 0,
    measuresLimiter: sections.includes("limiter"),
  };
}

export interface SharedSetup {
  /** The number of servers; 0 stands for one server with the embedded stores. */
  readonly servers: number;
  /** Whether its servers get a long warm-up first, because the compiler shares the cores, too. */
  readonly isWarmedUp?: true;
}

export const sharedName = ({ servers }: SharedSetup) => (servers === 0 ? "embedded" : `${servers}`);

/** The plan for PostgreSQL. The figures of several servers have no target and are measured once. */
export const SHARED = {
  workloads: DECISIVE,
  connections: 64,
  setups: [
    { servers: 0, isWarmedUp: true },
    { servers: 1 },
    { servers: 2 },
    { servers: 4, isWarmedUp: true },
  ] as readonly SharedSetup[],
  firstWarmUpSeconds: 6,
  warmUpSeconds: 1,
} as const;
const WRITE_MIX = { title: "81 list, 9 get, 10 create", mix: { list: 81, get: 9, create: 10 } };

export function sharedWorkload(id: WorkloadId): Workload {
  const title = id === "create-32" ? "create" : workloadOf(id).title;
  return { ...workloadOf(id), title, connections: SHARED.connections, ...(id === "mix" && WRITE_MIX) };
}
