import { audit, createPet } from "../harness/api-client.ts";
import { Child } from "../harness/child.ts";
import type { Fleet } from "../harness/fleet.ts";
import { SteadyLoad } from "../harness/steady-load.ts";
import type { Outcome } from "../harness/trials.ts";
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
  stop(): Promise<void>;
}

export interface Findings {
  readonly notes: readonly string[];
  readonly problems: readonly string[];
}

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
  const control = await startControlServer();
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
async function measure(experiment: Experiment, control: ControlServer, durationMs: number) {
  const { fleet } = experiment;
  const [url = ""] = fleet.urls;
  const key = experiment.key ?? (await fleet.createKey()).key;
  await createPet(url, key);
  const load = new SteadyLoad({ urls: fleet.urls, key, perSecond: PER_SECOND });
  await Bun.sleep(BEFORE_MS);

  const beganAt = performance.now();
  await experiment.inject?.();
  await Bun.sleep(Math.min(NOTICE_MS, durationMs));
  const { notes, problems } = (await experiment.check?.(key)) ?? { notes: [], problems: [] };
  await Bun.sleep(Math.max(0, durationMs - (performance.now() - beganAt)));
  await experiment.repair?.();
  const endedAt = performance.now();

  await Bun.sleep(AFTER_MS);
  await load.stop();
  const audited = await audit(url, key, load.acknowledged);
  return { figures: measureFigures({ load, fleet, audited, notes, control, beganAt, endedAt }), problems };
}

const INTERVAL_MS = 20;

export type ControlServer = Awaited<ReturnType<typeof startControlServer>>;

/**
 * Starts a server in a process of its own that only responds, and gets requests continuously. Neither the fault nor
 * Petstore affects it, so its response times show the delay of the machine itself.
 */
async function startControlServer() {
  const server = 'Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") })';
  const child = new Child([process.execPath, "-e", `console.log(${server}.url.href)`]);
  const [url] = await child.line(/^http\S+$/);
  const responses: { readonly endedAt: number; readonly ms: number }[] = [];
  const request = async () => {
    const startedAt = performance.now();
    await fetch(url);
    const endedAt = performance.now();
    responses.push({ endedAt, ms: endedAt - startedAt });
  };
  // A request that is aborted when the server stops does not count.
  const timer = setInterval(() => void request().catch(() => {}), INTERVAL_MS);
  return {
    /** The longest response time since a time of `performance.now()`. */
    longestSince: (time: number) =>
      Math.max(0, ...responses.flatMap(({ endedAt, ms }) => (endedAt >= time ? ms : []))),
    async stop() {
      clearInterval(timer);
      await child.stop("SIGKILL");
    },
  };
}
