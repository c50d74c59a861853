import { ask } from "../test/instances/asking.ts";
import type { Fleet } from "../test/instances/fleet.ts";
import type { Findings } from "./scenario.ts";

const PER_MINUTE = 60;

export interface FreeKeys {
  /** Its minute is used up, and every server has said so. */
  readonly spent: string;
  readonly fresh: string;
}

export async function freeKeys(fleet: Fleet): Promise<FreeKeys> {
  const { key: spent } = await fleet.newKey("free");
  const { key: fresh } = await fleet.newKey("free");
  for (const url of fleet.urls) while ((await ask(url, spent)).status === 200);
  return { spent, fresh };
}

/** What keys get while Valkey is away: nothing for one that is spent, one more limit on each server for another. */
export async function takenMeanwhile(fleet: Fleet, { spent, fresh }: FreeKeys): Promise<Findings> {
  const [bySpent, byFresh] = [await admitted(fleet, spent), await admitted(fleet, fresh)];
  const most = PER_MINUTE * fleet.urls.length;
  return {
    notes: [`a spent Free key got ${bySpent} more, a new one ${byFresh} on ${fleet.urls.length} servers`],
    problems: [
      ...(bySpent === 0 ? [] : [`a spent key was admitted ${bySpent} times`]),
      ...(byFresh === most ? [] : [`a new key was admitted ${byFresh} times instead of ${most}`]),
    ],
  };
}

/** Of a few more than a minute's requests, on every server. */
async function admitted(fleet: Fleet, key: string): Promise<number> {
  const asked = fleet.urls.flatMap((url) => Array.from({ length: PER_MINUTE + 5 }, () => url));
  let count = 0;
  for (const url of asked) if ((await ask(url, key)).status === 200) count++;
  return count;
}
