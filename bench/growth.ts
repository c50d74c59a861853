import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Meter } from "./measure.ts";
import { residentMb } from "./proc.ts";
import type { Progress } from "./progress.ts";
import type { Cell, GrowthStep } from "./results.ts";
import type { Server } from "./servers.ts";
import { prepareData, type Stage } from "./stage.ts";
import { startRepeatedly } from "./starts.ts";
import { takeTurns, turnName } from "./turns.ts";
import { valuesFor, writeValues } from "./values.ts";
import { workOf, type WorkId } from "./work.ts";

const SIZES = [1_000, 100_000, 10_000_000] as const;
const WORKS: readonly WorkId[] = ["list", "deep", "create-32"];
const STARTS = 5;

export interface GrowthOptions {
  readonly stage: Stage;
  readonly seconds: number;
  readonly rounds: number;
  readonly progress: Progress;
}

interface Size {
  readonly animals: number;
  readonly server: Server;
  readonly meter: Meter;
  readonly startMs: readonly number[];
  readonly cells: Cell[];
}

export function growthSteps(rounds: number): number {
  return SIZES.length * (1 + WORKS.length * (rounds + 1));
}

/** Petstore alone, on tables of three sizes, all three servers up at once and taking turns. */
export async function measureGrowth({
  stage,
  seconds,
  rounds,
  progress,
}: GrowthOptions): Promise<GrowthStep[]> {
  const sizes: Size[] = [];
  for (const animals of SIZES) {
    progress.step(`growth, ${animals.toLocaleString("en")} animals · filling and starting`);
    sizes.push(await open(stage, animals));
  }
  for (const work of WORKS) {
    const samples = await takeTurns(sizes, rounds, ({ animals, server, meter }, round) => {
      progress.step(
        `growth, ${animals.toLocaleString("en")} animals · ${workOf(work).title} · ${turnName(round)}`,
      );
      return meter.round(server, workOf(work), { seconds });
    });
    for (const [{ cells }, taken] of samples) cells.push({ work, server: "ours", samples: taken });
  }
  const steps = sizes.map(({ animals, server, startMs, cells }) => ({
    animals,
    startMs,
    residentMb: residentMb(server.pid),
    cells,
  }));
  for (const { server } of sizes) await stage.processes.stop(server);
  return steps;
}

async function open(stage: Stage, animals: number): Promise<Size> {
  const folder = join(stage.folder, `growth-${animals}`);
  mkdirSync(folder);
  const data = await prepareData({ ...stage, folder }, animals);
  const { server, startMs } = await startRepeatedly("ours", { stage, data, replies: {} }, STARTS);
  const values = valuesFor(animals);
  const files = writeValues(folder, values);
  const meter = new Meter({ processes: stage.processes, core: stage.cores?.load, folder, files }, values);
  return { animals, server, meter, startMs, cells: [] };
}
