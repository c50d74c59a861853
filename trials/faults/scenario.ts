import { audit, createPet } from "../harness/api-client.ts";
import type { Fleet } from "../harness/fleet.ts";
import { SteadyLoad } from "../harness/steady-load.ts";
import type { Outcome } from "../harness/trials.ts";
import { type Control, startControl } from "./control.ts";
import { type Expectation, type Figures, measureFigures } from "./figures.ts";

/** A fault that is injected under load, and its expected effects. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** How long the fault lasts; undefined if it ends at once. */
  readonly durationMs?: number;
  /** Why this machine cannot run the scenario, if it cannot. */
  unsupported?(): string | undefined;
  /** Prepares the scenario. The seed determines its random choices. */
  prepare(seed: number): Promise<Experiment>;
  readonly expectations: readonly Expectation[];
}

export interface Experiment {
  readonly fleet: Fleet;
  /** The key for the load; by default a key is created. */
  readonly key?: string;
  /** Injects the fault. Resolves when the fault has begun. */
  inject?(): Promise<unknown>;
  /** Runs further checks while the fault lasts. */
  check?(key: string): Promise<Findings>;
  /** Removes the cause of the fault. The servers may notice later. */
  repair?(): Promise<unknown>;
  /** Ends what runs beside the load, and judges it. Times are those of `performance.now()`. */
  finish?(beganAt: number, endedAt: number): Promise<Findings>;
  /** The URL of the database that takes over, whose response times show how busy the machine is with such work. */
  readonly takesOver?: string;
  stop(): Promise<void>;
}

export interface Findings {
  readonly notes: readonly string[];
  readonly problems: readonly string[];
}

const NOTHING_FOUND: Findings = { notes: [], problems: [] };

/** The load: enough to hit every fault within milliseconds, and low enough for a small machine. */
const PER_SECOND = 150;
const BEFORE_MS = 3_000;
const AFTER_MS = 3_000;
/** The time within which every server notices the fault. */
const NOTICE_MS = 1_000;

export async function runScenario(scenario: Scenario, seed: number): Promise<Outcome<Figures>> {
  const { durationMs = 0, expectations } = scenario;
  const reason = scenario.unsupported?.();
  if (reason !== undefined) return { problems: [], note: `not run: ${reason}` };
  const experiment = await scenario.prepare(seed);
  const control = await startControl(experiment.takesOver);
  try {
    const { figures, problems } = await measure(experiment, control, durationMs);
    const broken = expectations.flatMap((expectation) => expectation(figures) ?? []);
    return { figures, problems: [...problems, ...broken] };
  } finally {
    await control.stop();
    await experiment.stop();
  }
}

/** Runs some seconds without the fault, the fault, and some seconds without it again. */
async function measure(experiment: Experiment, control: Control, durationMs: number) {
  const { fleet } = experiment;
  const [url = ""] = fleet.urls;
  const key = experiment.key ?? (await fleet.createKey()).key;
  await createPet(url, key);
  const load = new SteadyLoad({ urls: fleet.urls, key, perSecond: PER_SECOND });
  await Bun.sleep(BEFORE_MS);

  const beganAt = performance.now();
  await experiment.inject?.();
  await Bun.sleep(Math.min(NOTICE_MS, durationMs));
  const checked = (await experiment.check?.(key)) ?? NOTHING_FOUND;
  await Bun.sleep(Math.max(0, durationMs - (performance.now() - beganAt)));
  const repairedFrom = performance.now();
  await experiment.repair?.();
  const endedAt = performance.now();

  await Bun.sleep(AFTER_MS);
  const finished = (await experiment.finish?.(beganAt, endedAt)) ?? NOTHING_FOUND;
  await load.stop();
  const audited = await audit(url, key, load.acknowledged);
  const notes = [...checked.notes, ...finished.notes];
  const period = { beganAt, repairedFrom, endedAt };
  return {
    figures: measureFigures({ load, fleet, audited, notes, control, ...period }),
    problems: [...checked.problems, ...finished.problems],
  };
}
