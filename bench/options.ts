import { integerIn, namesIn, parseFlags } from "../harness/command-line.ts";
import { PEERS, type PeerId } from "./candidates.ts";
import { WORKLOADS, type WorkloadId } from "./workloads.ts";

/** Measured besides the workloads. */
const SECTIONS = ["paced", "growth", "start", "limiter"] as const;
export type Section = (typeof SECTIONS)[number];

export type Options = Exclude<ReturnType<typeof readOptions>, undefined>;

const WORKLOAD_IDS = WORKLOADS.map(({ id }) => id);
const QUICK_WORKLOADS: readonly WorkloadId[] = ["list", "deep", "get", "create-32", "mix", "401", "429"];
const QUICK_PEERS: readonly PeerId[] = ["express", "fastify", "hono", "elysia"];
const MAX_SECONDS = 60;
const MAX_ROUNDS = 51;

export const HELP = `Usage: npm run bench [-- OPTIONS]

Measures Petstore against a bare Bun.serve route, a bare socket, nginx and peers in one run: interleaved rounds, server and load on
different cores, ratios as the result. Needs wrk; nginx is omitted if it is not installed.

  --only LIST      Workloads and sections, by name, with commas between (default: all)
                   workloads: ${WORKLOAD_IDS.join(", ")}
                   sections: ${SECTIONS.join(", ")}
  --peers LIST     none, all, or some of ${PEERS.join(", ")} (default: all)
  --seconds N      Length of a round, 1 to ${MAX_SECONDS} (default: 2)
  --rounds N       Number of rounds, 1 to ${MAX_ROUNDS} (default: 5)
  --quick          A first impression in seven minutes: short rounds, fewer workloads, no growth
  --json FILE      Where the figures are written (default: bench/results.json); the chart is written beside it as .svg
  --docs           Also write the figures to bench/results.md, and the summary and the chart to docs/performance.md
  --from FILE      Measure nothing: report the figures that an earlier run wrote
  --check          Exit with 1 if a target is missed
  --help           Show this
`;

const FLAGS = {
  only: { type: "string" },
  peers: { type: "string" },
  seconds: { type: "string" },
  rounds: { type: "string" },
  json: { type: "string" },
  from: { type: "string" },
  quick: { type: "boolean", default: false },
  docs: { type: "boolean", default: false },
  check: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

/** Undefined: --help. */
export function readOptions(args: readonly string[]) {
  const { only, peers, seconds, rounds, quick, help, json, from, docs, check } = parseFlags(args, FLAGS);
  if (help) return undefined;
  const chosen = only === undefined ? undefined : namesIn("--only", only, [...WORKLOAD_IDS, ...SECTIONS]);
  const isChosen = (name: WorkloadId | Section) => chosen?.includes(name) ?? true;
  const isReduced = chosen === undefined && quick;
  return {
    workloads: isReduced ? QUICK_WORKLOADS : workloadsOf(isChosen),
    sections: isReduced ? SECTIONS.slice(0, 1) : SECTIONS.filter(isChosen),
    peers: peers === undefined ? (quick ? QUICK_PEERS : PEERS) : peersIn(peers),
    nginx: !quick,
    seconds: integerIn("--seconds", seconds ?? (quick ? "1" : "2"), MAX_SECONDS),
    rounds: integerIn("--rounds", rounds ?? (quick ? "2" : "5"), MAX_ROUNDS),
    json,
    from,
    docs,
    check,
  };
}

/** A section that compares servers needs a workload. */
function workloadsOf(isChosen: (name: WorkloadId | Section) => boolean): readonly WorkloadId[] {
  const chosen = WORKLOAD_IDS.filter(isChosen);
  if (chosen.length > 0) return chosen;
  if (isChosen("paced")) return ["list", "get", "mix"];
  return isChosen("start") ? ["list"] : [];
}

function peersIn(value: string): readonly PeerId[] {
  if (value === "none") return [];
  return value === "all" ? PEERS : namesIn("--peers", value, PEERS);
}
