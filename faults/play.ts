import { audit } from "../test/instances/audit.ts";
import { Load } from "../test/instances/load.ts";
import { addFirst } from "../test/instances/operations.ts";
import { Control } from "./control.ts";
import { measure } from "./measure.ts";
import type { Figures, Findings, Ground, Result, Scenario } from "./scenario.ts";

/** Enough to meet every fault within milliseconds, and little enough for a small machine. */
const PER_SECOND = 150;
const BEFORE_MS = 3_000;
const AFTER_MS = 3_000;
/** Time for every server to find out before it is looked at. */
const SETTLED_MS = 1_000;

const NOTHING: Findings = { notes: [], problems: [] };

/** The course of every scenario: a while in health, the fault, a while in health again; then all is added up. */
export async function play<G extends Ground>(scenario: Scenario<G>): Promise<Result> {
  const { name, title, expectations } = scenario;
  const unfit = scenario.unfit?.();
  if (unfit !== undefined) return { name, title, unfit, problems: [] };
  const ground = await scenario.prepare();
  const control = await Control.start();
  try {
    const { figures, findings } = await run(scenario, ground, control);
    const broken = expectations.flatMap((expectation) => expectation(figures) ?? []);
    return { name, title, figures, problems: [...findings.problems, ...broken] };
  } finally {
    control.stop();
    await ground.stop();
  }
}

async function run<G extends Ground>(
  scenario: Scenario<G>,
  ground: G,
  control: Control,
): Promise<{ figures: Figures; findings: Findings }> {
  const { fleet } = ground;
  const [url = ""] = fleet.urls;
  const key = ground.key ?? (await fleet.newKey()).key;
  await addFirst(url, key);
  const load = new Load({ urls: fleet.urls, key, perSecond: PER_SECOND });
  await Bun.sleep(BEFORE_MS);

  const begunAt = performance.now();
  await scenario.begin(ground);
  await Bun.sleep(Math.min(SETTLED_MS, scenario.lastsMs ?? 0));
  const findings = (await scenario.during?.(ground, key)) ?? NOTHING;
  await Bun.sleep(Math.max(0, (scenario.lastsMs ?? 0) - (performance.now() - begunAt)));
  await scenario.end?.(ground);
  const endedAt = performance.now();

  await Bun.sleep(AFTER_MS);
  await load.stop();
  const kept = await audit(url, key, load.acknowledged);
  const figures = measure({ load, fleet, kept, notes: findings.notes, control, begunAt, endedAt });
  return { figures, findings };
}
