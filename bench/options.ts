import { parseArgs } from "node:util";
import { PEERS, type PeerId } from "./contestants.ts";
import { SECTIONS, type Section, WORKS, type WorkId } from "./work.ts";

export interface Options {
  readonly works: readonly WorkId[];
  readonly sections: readonly Section[];
  readonly peers: readonly PeerId[];
  readonly nginx: boolean;
  readonly seconds: number;
  readonly rounds: number;
  readonly quick: boolean;
  readonly json: string | undefined;
  readonly from: string | undefined;
  readonly docs: boolean;
  readonly check: boolean;
}

/** Something the caller asked for that cannot be; one line, exit 2. */
export class Misuse extends Error {}

const WORK_IDS = WORKS.map(({ id }) => id);
const QUICK_WORKS: readonly WorkId[] = ["list", "deep", "get", "create-32", "mix", "401", "429"];
const QUICK_PEERS: readonly PeerId[] = ["express", "fastify", "hono", "elysia"];
const MAX_SECONDS = 60;
const MAX_ROUNDS = 51;

export const HELP = `Usage: npm run bench [-- OPTIONS]

Measures Petstore against a bare Bun.serve route, a bare socket, nginx and peers, all in one run: rounds interleaved, server and load on
different cores, ratios as the result. Needs wrk; nginx is left out when it is missing.

  --only LIST      Work and sections, by name, with commas between (default: all)
                   work: ${WORK_IDS.join(", ")}
                   sections: ${SECTIONS.join(", ")}
  --peers LIST     none, all, or some of ${PEERS.join(", ")} (default: all)
  --seconds N      Length of a round, 1 to ${MAX_SECONDS} (default: 2)
  --rounds N       Rounds of each, 1 to ${MAX_ROUNDS} (default: 5)
  --quick          A first impression in seven minutes: short rounds, less of the work, no growth
  --json FILE      Where the figures go (default: bench/results.json); the chart goes beside it as .svg
  --docs           Also put the figures into docs/performance.md and the chart into docs/performance.svg
  --from FILE      Measure nothing: report figures that an earlier run wrote
  --check          Exit 1 when a bar is missed
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

export function readOptions(args: readonly string[]): Options | "help" {
  const { values } = parse(args);
  if (values.help) return "help";
  const { quick } = values;
  const chosen =
    values.only === undefined ? undefined : namesIn("--only", values.only, [...WORK_IDS, ...SECTIONS]);
  const isChosen = (name: WorkId | Section) => chosen?.includes(name) ?? true;
  const sections = SECTIONS.filter(isChosen);
  return {
    works: chosen === undefined && quick ? QUICK_WORKS : WORK_IDS.filter(isChosen),
    sections: chosen === undefined && quick ? ["paced"] : sections,
    peers: values.peers === undefined ? (quick ? QUICK_PEERS : PEERS) : peersIn(values.peers),
    nginx: !quick,
    seconds: integer("--seconds", values.seconds ?? (quick ? "1" : "2"), MAX_SECONDS),
    rounds: integer("--rounds", values.rounds ?? (quick ? "2" : "5"), MAX_ROUNDS),
    quick,
    json: values.json,
    from: values.from,
    docs: values.docs,
    check: values.check,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: FLAGS, strict: true, allowPositionals: false });
  } catch (error) {
    throw new Misuse(error instanceof Error ? error.message : String(error));
  }
}

function peersIn(value: string): readonly PeerId[] {
  if (value === "none") return [];
  return value === "all" ? PEERS : namesIn("--peers", value, PEERS);
}

function namesIn<const N extends string>(flag: string, value: string, known: readonly N[]): readonly N[] {
  return value.split(",").map((part) => {
    const found = known.find((name) => name === part.trim());
    if (found === undefined) throw new Misuse(`${flag}: "${part}" is none of ${known.join(", ")}`);
    return found;
  });
}

function integer(flag: string, value: string, max: number): number {
  const number = Number(value);
  if (!/^\d+$/.test(value) || number < 1 || number > max)
    throw new Misuse(`${flag} must be an integer from 1 to ${max}, not "${value}"`);
  return number;
}
