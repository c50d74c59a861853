import { RedisClient } from "bun";
import { join } from "node:path";
import { charge, chargedFolder } from "./charges.ts";
import { onFreePort } from "./port.ts";
import { provide, VALKEY } from "./programs.ts";
import { launch, type Server } from "./server.ts";

export interface ValkeyOptions {
  /** By their names in the configuration file. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Writes every change to a file at once, so that a restart finds it again. */
  readonly durable?: boolean;
}

/** Of logical databases there are as many as any run of the tests asks for; each costs next to nothing. */
const DEFAULTS = { bind: "127.0.0.1", databases: "4096", save: "" };

/** A Valkey or Redis server of one's own, to stop, kill or freeze. */
export async function startValkey({ settings = {}, durable = false }: ValkeyOptions = {}): Promise<Server> {
  const programs = provide(VALKEY);
  const folder = chargedFolder("valkey");
  const program = Bun.which("valkey-server", { PATH: programs }) ?? join(programs, "redis-server");
  const log = durable ? { appendonly: "yes", appendfsync: "always" } : {};
  return onFreePort((port) => {
    const all = { ...DEFAULTS, ...log, ...settings, dir: folder, port: `${port}` };
    return launch({
      url: `redis://127.0.0.1:${port}`,
      command: [program, ...Object.entries(all).flatMap(([name, value]) => [`--${name}`, value])],
      folder,
      ready: "Ready to accept connections",
      signals: { stop: "SIGTERM", quit: "SIGKILL" },
    });
  });
}

let shared: Promise<string> | undefined;
let nextDatabase = 0;

/** An empty logical database, on a server that the whole run of the tests shares. */
export async function valkeyUrl(): Promise<string> {
  const given = process.env.PETSTORE_TEST_VALKEY_URL;
  shared ??= given === undefined ? startValkey().then(({ url }) => url) : Promise.resolve(given);
  const url = new URL(await shared);
  if (given !== undefined) return emptyDatabaseOn(url);
  url.pathname = `/${nextDatabase++}`;
  return url.href;
}

/**
 * On a server that is not the tests' own, only a logical database that holds nothing may be used; it is emptied
 * again.
 */
async function emptyDatabaseOn(url: URL): Promise<string> {
  for (;;) {
    url.pathname = `/${nextDatabase++}`;
    const client = new RedisClient(url.href, { autoReconnect: false });
    try {
      if (Number(await client.send("DBSIZE", [])) !== 0) continue;
      charge({ keysOf: url.href });
      return url.href;
    } catch (error) {
      throw new Error(`PETSTORE_TEST_VALKEY_URL: no empty logical database is left at ${url.host}`, {
        cause: error,
      });
    } finally {
      client.close();
    }
  }
}
