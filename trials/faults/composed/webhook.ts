import { SQL } from "bun";
import { WEBHOOK_EVENTS } from "./deployment.ts";
import type { Played } from "./played.ts";

/** A server takes over 30 s after the one that delivered was killed, and repeats what failed. */
const DELIVERED_WITHIN_MS = 60_000;
const ASK_EVERY_MS = 250;

/** An entry as text. After a promotion, an identifier may be that of another entry. */
const entryText = (id: number, action: string, at: number) =>
  `${action} ${id} of ${new Date(at).toISOString()}`;

/** Returns the last identifier of an entry. A webhook delivers the entries from its first start on. */
export async function lastEntry(url: string): Promise<number> {
  await using sql = new SQL(url, { max: 1 });
  const [row] = await sql<[{ id: number }]>`SELECT coalesce(max(id), 0)::int AS id FROM production.audit`;
  return row.id;
}

/** Waits until every entry after this one that is stored was delivered. Returns those that were not. */
export async function findUndelivered(deployment: Played, after: number): Promise<readonly string[]> {
  const { receiver } = deployment;
  if (receiver === undefined) return [];
  const deadline = performance.now() + DELIVERED_WITHIN_MS;
  for (;;) {
    const stored = await storedEntries(deployment.primaryUrl, after);
    const delivered = new Set(
      receiver.received.map(({ entry = 0, type, body }) =>
        entryText(entry, type, Date.parse(JSON.parse(body).timestamp)),
      ),
    );
    const missing = stored.filter((entry) => !delivered.has(entry));
    if (missing.length === 0 || performance.now() > deadline)
      return missing.map((entry) => `${entry} was not delivered, of ${stored.length} entries`);
    await Bun.sleep(ASK_EVERY_MS);
  }
}

async function storedEntries(url: string, after: number): Promise<string[]> {
  await using sql = new SQL(url, { max: 1 });
  const rows = await sql<{ id: number; action: string; at: number }[]>`
    SELECT id::int, action, at::float8 FROM production.audit
    WHERE id > ${after} AND action = ANY (${sql.array([...WEBHOOK_EVENTS], "TEXT")})`;
  return rows.map(({ id, action, at }) => entryText(id, action, at));
}
