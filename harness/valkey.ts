import { RedisClient } from "bun";
import { cleanUpAtExit, temporaryFolder } from "./cleanup.ts";
import { onFreePort } from "./ports.ts";
import { valkeyServer } from "./programs.ts";
import { type Server, startServer } from "./server.ts";

export interface ValkeyOptions {
  /** By their names in the configuration file. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Each change is written to disk, so that a restart finds it again. */
  readonly durable?: boolean;
}

/** More logical databases than the tests use; each costs next to nothing. */
const DEFAULTS = { bind: "127.0.0.1", databases: "4096", save: "" };

export async function startValkey({ settings = {}, durable = false }: ValkeyOptions = {}): Promise<Server> {
  const folder = temporaryFolder("valkey");
  const log = durable ? { appendonly: "yes", appendfsync: "always" } : {};
  return onFreePort((port) => {
    const all = { ...DEFAULTS, ...log, ...settings, dir: folder, port: `${port}` };
    return startServer({
      url: `redis://127.0.0.1:${port}`,
      command: [valkeyServer(), ...Object.entries(all).flatMap(([name, value]) => [`--${name}`, value])],
      cwd: folder,
      ready: /Ready to accept connections/,
      stop: "SIGTERM",
    });
  });
}

export async function sendToValkey(url: string, command: string, ...args: string[]): Promise<string> {
  const client = new RedisClient(url, { autoReconnect: false });
  try {
    return String(await client.send(command, args));
  } finally {
    client.close();
  }
}

let shared: Promise<string> | undefined;
let nextDatabase = 0;

/** An empty logical database on a server that this process shares. */
export async function valkeyUrl(): Promise<string> {
  const given = process.env.PETSTORE_TEST_VALKEY_URL;
  shared ??= given === undefined ? startValkey().then(({ url }) => url) : Promise.resolve(given);
  const url = new URL(await shared);
  if (given !== undefined) return emptyDatabaseOn(url);
  url.pathname = `/${nextDatabase++}`;
  return url.href;
}

/** On a server that others use too, only a logical database without keys may be used. It is emptied at exit. */
async function emptyDatabaseOn(url: URL): Promise<string> {
  for (;;) {
    url.pathname = `/${nextDatabase++}`;
    const size = await sendToValkey(url.href, "DBSIZE").catch((cause: unknown) => {
      throw new Error(`PETSTORE_TEST_VALKEY_URL: no empty logical database is left at ${url.host}`, {
        cause,
      });
    });
    if (size !== "0") continue;
    cleanUpAtExit({ valkeyDatabase: url.href });
    return url.href;
  }
}
