import { RedisClient } from "bun";
import type { Certificate } from "./certificates.ts";
import { cleanUpAtExit, temporaryFolder } from "./cleanup.ts";
import { onFreePort } from "./ports.ts";
import { valkeyServer } from "./programs.ts";
import { type Server, startServer } from "./server.ts";

export interface ValkeyOptions {
  /** By their names in the configuration file. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Each change is written to disk, so that a restart finds it again. */
  readonly durable?: boolean;
  /** The server accepts connections over TLS only. */
  readonly tls?: Certificate;
}

/** More logical databases than the tests use; each costs next to nothing. */
const DEFAULTS = { bind: "127.0.0.1", databases: "4096", save: "" };

export async function startValkey(options: ValkeyOptions = {}): Promise<Server> {
  const { settings = {}, durable = false, tls } = options;
  const folder = temporaryFolder("valkey");
  const log = durable ? { appendonly: "yes", appendfsync: "always" } : {};
  return onFreePort((port) => {
    const ports = tls ? { port: "0", "tls-port": `${port}`, ...tlsSettings(tls) } : { port: `${port}` };
    const all = { ...DEFAULTS, ...log, ...settings, dir: folder, ...ports };
    return startServer({
      url: `${tls ? "rediss" : "redis"}://127.0.0.1:${port}`,
      command: [valkeyServer(), ...Object.entries(all).flatMap(([name, value]) => [`--${name}`, value])],
      cwd: folder,
      ready: /Ready to accept connections/,
      stop: "SIGTERM",
    });
  });
}

function tlsSettings({ certFile, keyFile }: Certificate): Record<string, string> {
  return {
    "tls-cert-file": certFile,
    "tls-key-file": keyFile,
    "tls-ca-cert-file": certFile,
    "tls-auth-clients": "no",
  };
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
