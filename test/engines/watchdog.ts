import { RedisClient, SQL } from "bun";
import { rmSync } from "node:fs";
import { isRunning, killFamily, signal, thawFamily } from "./family.ts";

/**
 * Outlives the tests by a moment. They tell it on standard input what they have started; when that input ends, because
 * the tests are over or because they were killed, it clears away what is left.
 */
export type Charge =
  | { readonly server: number; readonly quit: NodeJS.Signals }
  | { readonly gone: number }
  | { readonly folder: string }
  | { readonly database: string; readonly on: string }
  | { readonly keysOf: string };

const QUIT_WITHIN_MS = 3_000;

if (import.meta.main) {
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => {});
  await clear(parse(await Bun.stdin.text()));
}

function parse(text: string): Charge[] {
  return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
}

async function clear(charges: readonly Charge[]): Promise<void> {
  const gone = new Set(charges.flatMap((charge) => ("gone" in charge ? charge.gone : [])));
  await Promise.all(
    charges.map(async (charge) => {
      if ("server" in charge && !gone.has(charge.server)) await quit(charge.server, charge.quit);
      if ("database" in charge) await drop(charge.database, charge.on);
      if ("keysOf" in charge) await empty(charge.keysOf);
    }),
  );
  for (const charge of charges) {
    if ("folder" in charge) rmSync(charge.folder, { recursive: true, force: true });
  }
}

/** In good order first: PostgreSQL leaves a piece of shared memory behind when it is killed. */
async function quit(pid: number, name: NodeJS.Signals): Promise<void> {
  thawFamily(pid);
  signal(pid, name);
  const deadline = Date.now() + QUIT_WITHIN_MS;
  while (isRunning(pid) && Date.now() < deadline) await Bun.sleep(20);
  await killFamily(pid);
}

async function drop(database: string, url: string): Promise<void> {
  const sql = new SQL(url, { max: 1, connectionTimeout: 2 });
  await sql.unsafe(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`).catch(() => {});
  await sql.close({ timeout: 0 });
}

async function empty(logicalDatabase: string): Promise<void> {
  const client = new RedisClient(logicalDatabase, { autoReconnect: false, connectionTimeout: 2_000 });
  await client.send("FLUSHDB", []).catch(() => {});
  client.close();
}
