import type { OperationId } from "../contract/operations.ts";
import type { UsageHistoryStore } from "../domain/ports.ts";
import { HOUR_MS, type KeyCounts, startOf } from "../domain/usage-history.ts";
import type { DemoClient, DemoKey, Habit } from "./clients.ts";

const DAYS = 30;

/** The part of each operation in the requests of a client. */
const OPERATIONS: Readonly<Record<Habit, Readonly<Partial<Record<OperationId, number>>>>> = {
  browses: { listPets: 0.85, getPet: 0.15 },
  orders: { listPets: 0.4, listOrders: 0.15, placeOrder: 0.25, updateOrder: 0.2 },
  imports: { createPet: 0.6, listPets: 0.4 },
};

/** Adds a month of use before now, so that the plots of the console are not empty. */
export async function addEarlierUsage(
  usageHistory: Pick<UsageHistoryStore, "addUsage">,
  keys: readonly DemoKey[],
  now: number,
): Promise<void> {
  const used = keys.filter(({ client }) => client.earlierPerHour > 0);
  const current = startOf("hour", now);
  for (let sequence = 1; sequence <= DAYS * 24; sequence++) {
    const hour = current - (DAYS * 24 + 1 - sequence) * HOUR_MS;
    const counts = used.map(({ client, keyId }) => countsOf(client, keyId, hour));
    await usageHistory.addUsage({ writer: "demo", sequence, hour, keys: counts });
  }
}

function countsOf(client: DemoClient, keyId: number, hour: number): KeyCounts {
  const requests = Math.round(client.earlierPerHour * activityAt(hour) * (0.8 + 0.4 * Math.random()));
  const limited = client.plan === "free" ? Math.round(requests * 0.3 * Math.random()) : 0;
  const admitted = requests - limited;
  const byOperation = Object.entries(OPERATIONS[client.habit]).map(([operation, part]) => {
    const count = Math.round(admitted * part);
    return { operation: operation as OperationId, admitted: count, errors: Math.round(count * 0.02) };
  });
  const errors = byOperation.reduce((sum, each) => sum + each.errors, 0);
  return { keyId, admitted, limited, banned: 0, errors, lastUsedAt: hour + HOUR_MS - 1, byOperation };
}

/** From 0 to 1: little at night, and less on Saturday and Sunday. */
function activityAt(time: number): number {
  const date = new Date(time);
  const daily = 0.55 - 0.45 * Math.cos(((date.getUTCHours() - 3) / 24) * 2 * Math.PI);
  return [0, 6].includes(date.getUTCDay()) ? daily * 0.6 : daily;
}
