import { RedisClient } from "bun";
import type { Certificate } from "./certificates.ts";
import { temporaryFolder } from "./cleanup.ts";
import { onFreePort } from "./ports.ts";
import { executable, VALKEY } from "./programs.ts";
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
      command: [executable(VALKEY), ...Object.entries(all).flatMap(([name, value]) => [`--${name}`, value])],
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

/** Set by the test runner, so that all test files share one server. */
export const VALKEY_VARIABLE = "PETSTORE_TEST_VALKEY_URL";

let server: Promise<string> | undefined;

/** An empty logical database on a server that tests share. Database 0 counts those that are in use. */
export async function valkeyUrl(): Promise<string> {
  server ??= Promise.resolve(process.env[VALKEY_VARIABLE] ?? startValkey().then(({ url }) => url));
  const url = new URL(await server);
  url.pathname = `/${await sendToValkey(url.href, "INCR", "databases")}`;
  return url.href;
}
