import { integer, isGiven, names, parseFlags, text } from "../trials/harness/command-line.ts";
import { formatFigure, type Table } from "../trials/harness/table.ts";
import {
  type CandidateId,
  PEERS,
  type PeerId,
  WORKLOADS,
  type Workload,
  type WorkloadId,
  workloadOf,
} from "./workloads.ts";

/** Measured besides the workloads. */
const SECTIONS = ["paced", "growth", "shared", "start", "limiter"] as const;
export type Section = (typeof SECTIONS)[number];

const WORKLOAD_IDS = WORKLOADS.map(({ id }) => id);
/** The default: what most clients do, with five rounds and, except for get, the best peers. */
const DECISIVE: readonly WorkloadId[] = ["list", "get", "create-32", "mix"];
/** The default: other workloads with a target, against the bare route alone. */
const OTHERS: readonly WorkloadId[] = ["deep", "401", "401-unknown", "429"];
const OTHER_ROUNDS = 3;
/** Of these, which exceed their targets by far, and of the shared stores, whose every round is long. */
const FEW_ROUNDS = 2;
/** The fastest on Node and the fastest on Bun; --full measures whether they still are. */
export const BEST_PEERS: readonly PeerId[] = ["fastify", "hono"];
const MAX_SECONDS = 60;
const MAX_ROUNDS = 51;

export const HELP = `Usage: npm run bench [-- OPTIONS]

Measures Petstore against a bare Bun.serve route and peers in one run: interleaved rounds, server and load on different
cores, ratios as the result. Needs wrk. By default it measures what the targets need, in 15 minutes: ${DECISIVE.join(", ")}
in five rounds with the best peers, everything else in two or three.

  --full           All workloads, all peers and the bare socket in five rounds, and the rate limiter alone; 45 minutes
  --quick          A first impression in three minutes: short rounds, without paced and growth
  --only LIST      Workloads and sections, by name, with commas between
                   workloads: ${WORKLOAD_IDS.join(", ")}
                   sections: ${SECTIONS.join(", ")}
  --peers LIST     none, all, or some of ${PEERS.join(", ")} (default: ${BEST_PEERS.join(",")})
  --seconds N      Length of a round, 1 to ${MAX_SECONDS} (default: 2)
  --rounds N       Number of rounds, 1 to ${MAX_ROUNDS}
  --plan           Measure nothing: show the steps and how long they take
  --json FILE      Where the figures are written (default: bench/results.json); the chart is written beside it as .svg
  --docs           With --full: also write the figures to bench/results.md, the summary and the chart to docs/performance.md
  --from FILE      Measure nothing: report the figures that an earlier run wrote
  --check          Exit with 1 if a target is missed
  --help           Show this
`;

export const FLAGS = {
  only: names([...WORKLOAD_IDS, ...SECTIONS]),
  peers: names([...PEERS, "all", "none"]),
  seconds: integer(undefined, MAX_SECONDS),
  rounds: integer(undefined, MAX_ROUNDS),
  json: text,
  from: text,
  full: isGiven,
  quick: isGiven,
  plan: isGiven,
  docs: isGiven,
  check: isGiven,
} as const;

export type Options = ReturnType<typeof optionsOf>;

export const readOptions = (args: readonly string[]) => optionsOf(parseFlags(args, FLAGS));

export function optionsOf(flags: ReturnType<typeof parseFlags<typeof FLAGS>>) {
  const { only, peers, seconds, rounds, full, quick, ...others } = flags;
  const isChosen = (name: WorkloadId | Section) => only?.includes(name) ?? true;
  const isDefault = only === undefined && !full;
  return {
    ...others,
    full,
    /** Whether the workloads that are not decisive are measured with fewer servers. */
    isDefault,
    workloads: isDefault ? [...DECISIVE, ...OTHERS] : workloadsOf(isChosen),
    sections: isDefault ? SECTIONS.slice(0, quick ? 0 : 3) : SECTIONS.filter(isChosen),
    peers: PEERS.filter((id) =>
      (peers ?? (full ? PEERS : BEST_PEERS)).some((each) => each === id || each === "all"),
    ),
    seconds: seconds ?? (quick ? 1 : 2),
    rounds: rounds ?? (quick ? 2 : 5),
    otherRounds: rounds ?? (quick ? 2 : full ? 5 : OTHER_ROUNDS),
  };
}

/** A section that compares servers needs a workload. */
function workloadsOf(isChosen: (name: WorkloadId | Section) => boolean): readonly WorkloadId[] {
  const chosen = WORKLOAD_IDS.filter(isChosen);
  if (chosen.length > 0) return chosen;
  if (isChosen("paced")) return ["list", "get", "mix"];
  return isChosen("start") ? ["list"] : [];
}

export const WARM_UP_SECONDS = 2;
export const PACED = {
  workloads: ["list", "get", "mix"] as readonly WorkloadId[],
  servers: ["bare", "ours"] as readonly CandidateId[],
  /**
   * Until the compiler has compiled even what one request in a hundred needs. It shares the server's core, and p99
   * would be the time that it takes.
   */
  firstWarmUpSeconds: 30,
  trialSeconds: 1,
} as const;
export const GROWTH_WARM_UP_SECONDS = 1;
/** PostgreSQL and Valkey. The figures of several servers have no target and are measured once. */
export const SHARED = {
  workloads: DECISIVE,
  connections: 64,
  /** 0 stands for one server with the embedded stores. */
  servers: [0, 1, 2, 4] as readonly number[],
  /** The servers of these get a long warm-up first: the compiler shares the cores, too. */
  warmedUp: [0, 4] as readonly number[],
  firstWarmUpSeconds: 6,
  warmUpSeconds: 1,
  startSeconds: 24,
} as const;
const WRITE_MIX = { title: "81 list, 9 get, 10 create", mix: { list: 81, get: 9, create: 10 } };

export function sharedWorkload(id: WorkloadId): Workload {
  const title = id === "create-32" ? "create" : workloadOf(id).title;
  return { ...workloadOf(id), title, connections: SHARED.connections, ...(id === "mix" && WRITE_MIX) };
}

/** One workload: who is measured with it, and how often. */
export interface PlannedLoad {
  readonly workload: WorkloadId;
  /** By their names. */
  readonly servers: readonly string[];
  readonly rounds: number;
}

export interface Step {
  readonly what: string;
  readonly runs: number;
  /** Of one run, as estimated. */
  readonly seconds: number;
}

export type Plan = ReturnType<typeof planOf>;

/** As measured on two cores of Neoverse-N1. */
const START_SECONDS = 0.5;
const CHECK_SECONDS = 0.25;
const INSERTS_PER_SECOND = 200_000;
const LIMITER_SECONDS = 60;

export function planOf(options: Options) {
  const { workloads, peers, sections, rounds, otherRounds, seconds, full, isDefault } = options;
  const ids: CandidateId[] = ["bare", "ours", ...(full ? (["socket"] as const) : []), ...peers];
  const loads = workloads.map((workload): PlannedLoad => {
    const isReduced = isDefault && OTHERS.includes(workload);
    if (isReduced) return { workload, servers: ["bare", "ours"], rounds: Math.min(rounds, FEW_ROUNDS) };
    return { workload, servers: isDefault && workload === "get" ? ["bare", "ours"] : ids, rounds };
  });
  const paced = sections.includes("paced")
    ? PACED.workloads.filter((workload) => workloads.includes(workload))
    : [];
  const growth = {
    sizes: !sections.includes("growth") ? [] : isDefault ? [1_000, 10_000_000] : [1_000, 100_000, 10_000_000],
    workloads: (isDefault ? ["list", "create-32"] : ["list", "deep", "create-32"]) as readonly WorkloadId[],
  };
  const shared = { rounds: sections.includes("shared") ? Math.min(otherRounds, FEW_ROUNDS) : 0 };
  const measuresLimiter = sections.includes("limiter");

  const steps: Step[] = [];
  const add = (what: string, runs: number, each: number) => {
    if (runs > 0) steps.push({ what, runs, seconds: each });
  };
  const loadSeconds = (warmUp: number) => warmUp + seconds + 2 * CHECK_SECONDS;
  add("creating the pets, capturing Petstore's responses", loads.length > 0 ? 1 : 0, 5);
  add("starting servers", loads.length > 0 ? rounds * ids.length : 0, START_SECONDS);
  for (const { workload, servers, rounds } of loads)
    add(workloadOf(workload).title, rounds * servers.length, loadSeconds(WARM_UP_SECONDS));
  const pacedStarts = paced.length > 0 ? otherRounds * PACED.servers.length : 0;
  add("paced: starting and warming up", 2 * pacedStarts, (START_SECONDS + PACED.firstWarmUpSeconds) / 2);
  const pacedSeconds = loadSeconds(WARM_UP_SECONDS + PACED.trialSeconds);
  for (const workload of paced) add(`paced: ${workloadOf(workload).title}`, pacedStarts, pacedSeconds);
  const rows = growth.sizes.reduce((sum, size) => sum + size, 0);
  add("growth: creating pets", growth.sizes.length, 1 + rows / INSERTS_PER_SECOND / growth.sizes.length);
  add("growth: starting servers", otherRounds * growth.sizes.length, START_SECONDS);
  const growthRuns = otherRounds * growth.sizes.length * growth.workloads.length;
  add("growth: all workloads", growthRuns, loadSeconds(GROWTH_WARM_UP_SECONDS));
  const runsOf = (servers: number) => (servers > 1 ? Math.min(1, shared.rounds) : shared.rounds);
  const sharedRuns = SHARED.servers.reduce((sum, servers) => sum + runsOf(servers), 0);
  add("shared: starting PostgreSQL, Valkey and servers", Math.min(1, shared.rounds), SHARED.startSeconds);
  add("shared: all workloads", sharedRuns * SHARED.workloads.length, SHARED.warmUpSeconds + seconds);
  add("rate limiter alone", measuresLimiter ? 1 : 0, LIMITER_SECONDS);
  return { ids, loads, paced, growth, shared, measuresLimiter, steps };
}

const minutesOf = (steps: readonly Step[]) =>
  steps.reduce((sum, { runs, seconds }) => sum + runs * seconds, 0) / 60;

export function planTable({ steps }: Plan): Table {
  return {
    title: `The plan: about ${Math.ceil(minutesOf(steps))} minutes`,
    header: ["step", "runs", "seconds each", "minutes"],
    rows: steps.map((step) => [
      step.what,
      `${step.runs}`,
      formatFigure(step.seconds),
      minutesOf([step]).toFixed(1),
    ]),
  };
}
