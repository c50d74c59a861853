import { RedisClient } from "bun";
import { type FreeKeys, freeKeys, takenMeanwhile } from "../absence.ts";
import {
  backWithin,
  eachSaysSo,
  nobodyNotices,
  onlyErrors,
  waitsAtMost,
  WHATEVER_HAPPENS,
} from "../expectations.ts";
import { type TwoEngines, twoEngines } from "../ground.ts";
import type { Scenario } from "../scenario.ts";

interface WithFreeKeys extends TwoEngines {
  readonly free: FreeKeys;
}

async function withFreeKeys(): Promise<WithFreeKeys> {
  const ground = await twoEngines({ servers: 2 });
  return { ...ground, free: await freeKeys(ground.fleet) };
}

/** No errors at all, a wait of 25 ms at the most, one line at each turn, and back within a second. */
const AWAY = [...WHATEVER_HAPPENS, onlyErrors(), waitsAtMost(25), eachSaysSo("Valkey"), backWithin(1_000)];
const UNNOTICED = [...WHATEVER_HAPPENS, onlyErrors(), waitsAtMost(25), nobodyNotices];

async function send(url: string, ...[command = "", ...args]: string[]): Promise<void> {
  const client = new RedisClient(url, { autoReconnect: false });
  await client.send(command, args);
  client.close();
}

export const VALKEY: readonly Scenario<WithFreeKeys>[] = [
  {
    name: "valkey-frozen",
    title: "Valkey frozen (SIGSTOP) for 4 s",
    prepare: withFreeKeys,
    begin: async ({ valkey }) => valkey.freeze(),
    lastsMs: 4_000,
    during: ({ fleet, free }) => takenMeanwhile(fleet, free),
    end: async ({ valkey }) => valkey.thaw(),
    expectations: AWAY,
  },
  {
    name: "valkey-killed",
    title: "Valkey killed, started again empty 4 s later",
    prepare: withFreeKeys,
    begin: ({ valkey }) => valkey.kill(),
    lastsMs: 4_000,
    during: ({ fleet, free }) => takenMeanwhile(fleet, free),
    end: ({ valkey }) => valkey.restart(),
    expectations: AWAY,
  },
];

export const FLUSHES: readonly Scenario<TwoEngines>[] = [
  {
    name: "script-flush",
    title: "Valkey forgets its scripts (SCRIPT FLUSH)",
    prepare: () => twoEngines({ servers: 2 }),
    begin: ({ valkey }) => send(valkey.url, "SCRIPT", "FLUSH"),
    expectations: UNNOTICED,
  },
  {
    name: "flushall",
    title: "Valkey forgets its counts (FLUSHALL)",
    prepare: () => twoEngines({ servers: 2 }),
    begin: ({ valkey }) => send(valkey.url, "FLUSHALL"),
    expectations: UNNOTICED,
  },
];
