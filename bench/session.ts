import { Arena } from "./arena.ts";
import { contestSteps, holdContest } from "./contest.ts";
import type { ContestantId } from "./contestants.ts";
import { growthSteps, measureGrowth } from "./growth.ts";
import { measureLimiter } from "./limiter-figures.ts";
import { describeMachine, moveTo } from "./machine.ts";
import type { Options } from "./options.ts";
import { measurePaced, pacedSteps } from "./paced.ts";
import { Progress } from "./progress.ts";
import type { Cell, LimiterFigures, PacedCell, Results, ServerFacts } from "./results.ts";
import type { Stage } from "./stage.ts";
import { describeVersions } from "./versions.ts";
import type { Section } from "./work.ts";

const ANIMALS = 100_000;

/** The whole run, from an empty folder to the figures. */
export async function measureAll(options: Options, stage: Stage): Promise<Results> {
  const { seconds, rounds } = options;
  const machine = describeMachine();
  if (stage.cores) moveTo(stage.cores.load);
  const { ids, omitted } = lineUp(options);
  const wants = (section: Section) => options.sections.includes(section);
  const progress = new Progress(stepsOf(options, ids), process.stderr);
  try {
    const contest = await compete(options, { stage, ids, progress });
    const growth = wants("growth") ? await measureGrowth({ stage, seconds, rounds, progress }) : [];
    const limiter = wants("limiter") ? await limiterFigures(stage, progress) : undefined;
    return {
      format: 1,
      takenAt: new Date().toISOString(),
      machine,
      versions: describeVersions(ids),
      pinned: stage.cores !== undefined,
      seconds,
      rounds,
      animals: ANIMALS,
      ...contest,
      growth,
      ...(limiter && { limiter }),
      omitted,
    };
  } finally {
    progress.finish();
  }
}

function limiterFigures({ processes }: Stage, progress: Progress): Promise<LimiterFigures> {
  progress.step("the limiter by itself, at 1, 1,000 and 1,000,000 keys");
  return measureLimiter(processes);
}

/** A bound for the whole run, several times what it should take. */
export function longestMs(options: Options): number {
  const steps = stepsOf(options, lineUp(options).ids);
  return steps * (options.seconds + 5) * 1_000 + 600_000;
}

function stepsOf({ works, sections, rounds }: Options, ids: readonly ContestantId[]): number {
  const competes = works.length > 0 || sections.includes("start");
  const paced = sections.includes("paced") ? pacedSteps(works, rounds) : 0;
  const growth = sections.includes("growth") ? growthSteps(rounds) : 0;
  const limiter = sections.includes("limiter") ? 1 : 0;
  return (competes ? 1 + contestSteps(ids, { works, rounds }) : 0) + paced + growth + limiter;
}

function lineUp({ peers, nginx }: Options): { ids: ContestantId[]; omitted: Results["omitted"] } {
  const hasNginx = Bun.which("nginx") !== null;
  const absent = nginx
    ? "nginx is not installed (Debian, Ubuntu: apt-get install nginx-light)"
    : "not in a quick run";
  return {
    ids: ["bare", "ours", "socket", ...(nginx && hasNginx ? (["nginx"] as const) : []), ...peers],
    omitted: nginx && hasNginx ? [] : [{ id: "nginx", reason: absent }],
  };
}

interface Contest {
  readonly cells: readonly Cell[];
  readonly paced: readonly PacedCell[];
  readonly servers: readonly ServerFacts[];
}

async function compete(
  { works, sections, seconds, rounds }: Options,
  { stage, ids, progress }: { stage: Stage; ids: readonly ContestantId[]; progress: Progress },
): Promise<Contest> {
  if (works.length === 0 && !sections.includes("start")) return { cells: [], paced: [], servers: [] };
  const arena = await Arena.open({ stage, ids, works, animals: ANIMALS, progress });
  const cells = await holdContest({ arena, works, seconds, rounds, progress });
  const servers = arena.facts();
  const paced = sections.includes("paced")
    ? await measurePaced({ arena, cells, seconds, rounds, progress })
    : [];
  await arena.stop();
  return { cells, paced, servers };
}
