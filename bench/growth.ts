import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Meter, openMeter } from "./measure.ts";
import { residentMb } from "./proc.ts";
import type { Progress } from "./progress.ts";
import type { GrowthStep } from "./results.ts";
import { type Server, startServer } from "./servers.ts";
import { prepareData, type Setting, type Stage } from "./stage.ts";
import { inTurn, Scores } from "./turns.ts";
import { valuesFor } from "./values.ts";
import { workOf, type WorkId } from "./work.ts";

const SIZES = [1_000, 100_000, 10_000_000] as const;
const WORKS: readonly WorkId[] = ["list", "deep", "create-32"];
const WARM_UP_SECONDS = 1;

export interface GrowthOptions {
  readonly stage: Stage;
  readonly seconds: number;
  readonly rounds: number;
  readonly progress: Progress;
}

interface Size {
  readonly animals: number;
  readonly setting: Setting;
  readonly meter: Meter;
  readonly startMs: number[];
  readonly scores: Scores;
}

export function growthSteps(rounds: number): number {
  return SIZES.length * (1 + (1 + WORKS.length) * rounds);
}

/** Petstore alone, on tables of three sizes: all three servers up at once and taking turns, started anew each round. */
export async function measureGrowth(options: GrowthOptions): Promise<GrowthStep[]> {
  const { stage, rounds, progress } = options;
  const sizes: Size[] = [];
  for (const animals of SIZES) {
    progress.step(`growth, ${titleOf(animals)} · filling`);
    sizes.push(await prepare(stage, animals));
  }
  let resident = new Map<Size, number>();
  for (let round = 1; round <= rounds; round++) resident = await playRound(sizes, round, options);
  return sizes.map((size) => ({
    animals: size.animals,
    startMs: size.startMs,
    residentMb: resident.get(size) ?? Number.NaN,
    cells: size.scores.cells,
  }));
}

/** Gives the memory that each server took up at the end. */
async function playRound(
  sizes: readonly Size[],
  round: number,
  { stage, seconds, progress }: GrowthOptions,
): Promise<Map<Size, number>> {
  const servers = new Map<Size, Server>();
  for (const size of sizes) {
    progress.step(`growth, ${titleOf(size.animals)} · starting`);
    const server = await startServer("ours", size.setting);
    size.startMs.push(server.startMs);
    servers.set(size, server);
  }
  for (const work of WORKS) {
    for (const [size, server] of inTurn([...servers], round)) {
      progress.step(`growth, ${titleOf(size.animals)} · ${workOf(work).title} · round ${round}`);
      await size.meter.round(server, workOf(work), { seconds: WARM_UP_SECONDS });
      size.scores.add(work, "ours", await size.meter.round(server, workOf(work), { seconds }));
    }
  }
  const resident = new Map([...servers].map(([size, { pid }]) => [size, residentMb(pid)]));
  for (const server of servers.values()) await stage.processes.stop(server);
  return resident;
}

async function prepare(stage: Stage, animals: number): Promise<Size> {
  const folder = join(stage.folder, `growth-${animals}`);
  mkdirSync(folder);
  const data = await prepareData({ ...stage, folder }, animals);
  const meter = openMeter(folder, stage, valuesFor(animals));
  const scores = new Scores(WORKS, () => ["ours"]);
  return { animals, setting: { stage, data, replies: {} }, meter, startMs: [], scores };
}

function titleOf(animals: number): string {
  return `${animals.toLocaleString("en")} animals`;
}
