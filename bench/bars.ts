import { CONTESTANTS, type ContestantId } from "./contestants.ts";
import { type Results, samplesOf, throughputOf } from "./results.ts";
import { median, ratioOf, type Spread, spreadOf } from "./statistics.ts";
import type { WorkId } from "./work.ts";

/** What the service has to reach, each in the same run as all others. */
export interface Bar {
  readonly what: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly unit: "×" | "MB" | "ms";
  measure(results: Results): Spread | undefined;
}

export interface Outcome {
  readonly bar: Bar;
  readonly measured: Spread | undefined;
  /** Undefined when the run did not measure it. */
  readonly reached: boolean | undefined;
}

const LARGEST = 10_000_000;
const SMALLEST = 1_000;

const NODE_PEERS = CONTESTANTS.filter(({ kind }) => kind === "node").map(({ id }) => id);
const BUN_PEERS = CONTESTANTS.filter(({ kind }) => kind === "bun").map(({ id }) => id);

export const BARS: readonly Bar[] = [
  againstBare("list", "list, first page, against the bare route", 0.85),
  againstBare("get", "get, against the bare route", 0.85),
  againstBare("401", "401 without a key, against the bare route", 0.85),
  againstBare("401-unknown", "401 with an unknown key, against the bare route", 0.85),
  againstBare("429", "429, against the bare route", 0.85),
  againstBare("deep", "random deep page, not seen before, against the bare route", 0.45),
  againstBare("mix", "90/9/1 mix, against the bare route", 0.75),
  againstBare(
    "create-32",
    "create at 32 connections, durable, against a bare route that reads the body",
    0.5,
  ),
  againstBest("list", NODE_PEERS, "list, against the best Node peer", 2.5),
  againstBest("mix", NODE_PEERS, "90/9/1 mix, against the best Node peer", 2.5),
  againstBest("list", BUN_PEERS, "list, against the best Bun peer", 1.5),
  againstBest("mix", BUN_PEERS, "90/9/1 mix, against the best Bun peer", 1.5),
  againstBest(
    "create-32",
    [...NODE_PEERS, ...BUN_PEERS],
    "create at 32 connections, against the best peer",
    5,
  ),
  whenGrown("list", "list at 10,000,000 animals, against 1,000", 0.9),
  whenGrown("create-32", "create at 10,000,000 animals, against 1,000", 0.9),
  atHalfLoad("list", "p99 of list at half load, against the bare route's", 2),
  atHalfLoad("get", "p99 of get at half load, against the bare route's", 2),
  atHalfLoad("mix", "p99 of the mix at half load, against the bare route's", 2),
  {
    what: "resident memory after the run with 10,000,000 animals",
    atMost: 150,
    unit: "MB",
    measure: ({ growth }) => {
      const step = growth.find(({ animals }) => animals === LARGEST);
      return step && spreadOf([step.residentMb]);
    },
  },
  {
    what: "start to first answer on that database",
    atMost: 150,
    unit: "ms",
    measure: ({ growth }) => {
      const step = growth.find(({ animals }) => animals === LARGEST);
      return step && spreadOf(step.startMs);
    },
  },
];

export function judge(results: Results): Outcome[] {
  return BARS.map((bar) => {
    const measured = bar.measure(results);
    const value = measured?.median;
    const reached =
      value === undefined ? undefined : value >= (bar.atLeast ?? 0) && value <= (bar.atMost ?? Infinity);
    return { bar, measured, reached };
  });
}

function againstBare(work: WorkId, what: string, atLeast: number): Bar {
  return {
    what,
    atLeast,
    unit: "×",
    measure: ({ cells }) => {
      const ours = throughputOf(cells, work, "ours");
      const bare = throughputOf(cells, work, "bare");
      return ours && bare && ratioOf(ours, bare);
    },
  };
}

/** All of them have to take part: without the best of them the bar would be too easy. */
function againstBest(work: WorkId, peers: readonly ContestantId[], what: string, atLeast: number): Bar {
  return {
    what,
    atLeast,
    unit: "×",
    measure: ({ cells }) => {
      const ours = throughputOf(cells, work, "ours");
      const theirs = peers.flatMap((peer) => {
        const found = throughputOf(cells, work, peer);
        return found === undefined ? [] : [found];
      });
      const best = theirs.toSorted((a, b) => median(b) - median(a))[0];
      return ours && best && theirs.length === peers.length ? ratioOf(ours, best) : undefined;
    },
  };
}

function whenGrown(work: WorkId, what: string, atLeast: number): Bar {
  return {
    what,
    atLeast,
    unit: "×",
    measure: ({ growth }) => {
      const at = (size: number) =>
        throughputOf(growth.find(({ animals }) => animals === size)?.cells ?? [], work, "ours");
      const large = at(LARGEST);
      const small = at(SMALLEST);
      return large && small && ratioOf(large, small);
    },
  };
}

function atHalfLoad(work: WorkId, what: string, atMost: number): Bar {
  return {
    what,
    atMost,
    unit: "×",
    measure: ({ paced }) => {
      const p99 = (server: ContestantId) => samplesOf(paced, work, server)?.map(({ p99Ms }) => p99Ms);
      const ours = p99("ours");
      const bare = p99("bare");
      return ours && bare && ratioOf(ours, bare);
    },
  };
}
