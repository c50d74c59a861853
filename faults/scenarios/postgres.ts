import { ask } from "../../test/instances/asking.ts";
import {
  backWithin,
  eachSaysSo,
  onlyErrors,
  refusalsSayWhen,
  refusesWithin,
  waitsAtMost,
  WHATEVER_HAPPENS,
} from "../expectations.ts";
import { type TwoEngines, twoEngines } from "../ground.ts";
import type { Findings, Scenario } from "../scenario.ts";

/** The longest that a query is waited for; until it is over, a server cannot know. */
const DEADLINE_MS = 2_000;

const AWAY = [
  ...WHATEVER_HAPPENS,
  onlyErrors("503 unavailable"),
  refusalsSayWhen,
  refusesWithin(50),
  waitsAtMost(DEADLINE_MS),
  eachSaysSo("PostgreSQL"),
  backWithin(1_000),
];

/** A key that was seen before is told from a wrong one, so what it hears is 503 and its own limits. */
async function knownKey({ fleet }: TwoEngines, key: string): Promise<Findings> {
  const answers = await Promise.all(fleet.urls.map((url) => ask(url, key)));
  const isRecognised = answers.every(({ code, limit }) => code === "unavailable" && limit === 1_000_000);
  return {
    notes: isRecognised ? ["a key seen before is answered 503, with its own limits"] : [],
    problems: isRecognised ? [] : [`a key seen before is answered ${JSON.stringify(answers)}`],
  };
}

const prepare = () => twoEngines({ servers: 2 });

export const POSTGRES: readonly Scenario<TwoEngines>[] = [
  {
    name: "postgres-frozen",
    title: "PostgreSQL frozen (SIGSTOP) for 5 s",
    prepare,
    begin: async ({ postgres }) => postgres.freeze(),
    lastsMs: 5_000,
    during: knownKey,
    end: async ({ postgres }) => postgres.thaw(),
    expectations: AWAY,
  },
  {
    name: "postgres-killed",
    title: "PostgreSQL killed, started again 3 s later",
    prepare,
    begin: ({ postgres }) => postgres.kill(),
    lastsMs: 3_000,
    during: knownKey,
    end: ({ postgres }) => postgres.restart(),
    expectations: AWAY,
  },
  {
    name: "postgres-restarted",
    title: "PostgreSQL restarted in good order",
    prepare,
    begin: ({ postgres }) => postgres.restart(),
    expectations: [
      ...WHATEVER_HAPPENS,
      onlyErrors("503 unavailable"),
      refusalsSayWhen,
      waitsAtMost(DEADLINE_MS),
      backWithin(1_000),
    ],
  },
];
