import { SQL } from "bun";
import { sendOnce } from "../../harness/http-connection.ts";
import type { Disturbance } from "./history.ts";
import type { Played } from "./played.ts";

const EVERY_MS = 100;
/** A part that takes longer than this to respond is disturbed, because of a fault or a busy machine. */
const SLOW_MS = 250;

/**
 * Asks every server and the primary continuously, and records when one does not respond soon. So no verdict
 * depends on how busy the machine is.
 */
export function startMonitor(deployment: Played, now: () => number) {
  const { fleet, disturbances } = deployment;
  const end = new AbortController();
  const watch = async (disturbance: Pick<Disturbance, "part" | "number">, ask: () => Promise<unknown>) => {
    while (!end.signal.aborted) {
      const from = now();
      await ask().catch(() => {});
      const until = now();
      if (until - from > SLOW_MS) disturbances.push({ ...disturbance, what: "is slow", from, until });
      await Bun.sleep(EVERY_MS);
    }
  };
  const databases = new Map<string, SQL>();
  /** Queries the primary, or the next one if it is replaced meanwhile. */
  const query = async (statement: string): Promise<void> => {
    const url = deployment.primaryUrl;
    const sql = databases.get(url) ?? new SQL(url, { max: 2, connectionTimeout: 5 });
    databases.set(url, sql);
    const isReplaced = async () => {
      while (deployment.primaryUrl === url && !end.signal.aborted) await Bun.sleep(EVERY_MS);
    };
    await Promise.race([sql.unsafe(statement), isReplaced()]);
  };
  const watched = [
    ...fleet.ports.map((port, index) =>
      watch({ part: "server", number: index + 1 }, () => sendOnce(port, { path: "/healthz" })),
    ),
    watch({ part: "primary" }, () => query("SELECT 1")),
    watch({ part: "commit" }, () => query("SELECT pg_logical_emit_message(true, '', '')")),
  ];
  let checkedAt = now();
  const timer = setInterval(() => {
    const from = checkedAt;
    checkedAt = now();
    // This process does little, so the others had to wait for a core as well.
    if (checkedAt - from > SLOW_MS)
      disturbances.push({ part: "machine", what: "is slow", from, until: checkedAt });
    deployment.checkRunning();
  }, EVERY_MS);
  return {
    async stop() {
      end.abort();
      clearInterval(timer);
      await Promise.all(watched);
      await Promise.all([...databases.values()].map((sql) => sql.close({ timeout: 0 })));
    },
  };
}
