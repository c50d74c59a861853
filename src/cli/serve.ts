import { resolve } from "node:path";
import { type Config, configOf, describeStorage } from "../config/config.ts";
import { SETTINGS } from "../config/options.ts";
import { BASE_PATH } from "../contract/operations.ts";
import { generateSecret, hashSecret } from "../domain/api-keys.ts";
import { limitsOf } from "../domain/plans.ts";
import type { KeyStore } from "../domain/ports.ts";
import { createLog } from "../log.ts";
import packageJson from "../../package.json" with { type: "json" };
import { type Context, defineCommand, Failure } from "./command.ts";
import { errorMessage, systemErrorField } from "./error-message.ts";
import { columns, formatLimits, formatSecret } from "./output.ts";

export const serve = defineCommand({
  name: "serve",
  summary: "Serve the API",
  description:
    "Serves one environment until a stop signal (Ctrl-C, SIGTERM, SIGHUP). It finishes the requests in progress, then exits. If no API key exists yet, it creates one and prints it. The log goes to standard error.",
  options: SETTINGS,
  examples: [
    "petstore serve",
    "petstore serve --env staging",
    "petstore serve --host 0.0.0.0 --public-url https://api.example.com --trust-proxy 10.0.0.0/8",
    "petstore serve --free-limits 120/5000 --ban-length 15m",
  ],
  async run({ values }, context) {
    const config = configOf(values);
    const stopSignal = context.stopSignal();
    const log = createLog();
    const { startApp } = await import("../app.ts");
    const app = await startApp(config, { log }).catch((error: unknown) => listenFailure(error, config));
    if (app instanceof Failure) return app;
    let stoppingSince: number;
    try {
      const failure = await printStart(app, config, context);
      if (failure) return failure;
      log.info("serving", startDetails(config, app.url));
      log.info("stopping", { signal: await stopSignal });
      stoppingSince = performance.now();
    } finally {
      await app.close();
    }
    log.info("stopped", { afterMs: Math.round(performance.now() - stoppingSince) });
    return undefined;
  },
});

interface Served {
  readonly url: string;
  readonly keys: KeyStore;
}

/** One write: whoever reads "Rate limits" has read all of it, and the server accepts requests. */
async function printStart(
  served: Served,
  config: Config,
  { clock, print }: Pick<Context, "clock" | "print">,
): Promise<Failure | undefined> {
  const firstKey = await createFirstKey(served, config, clock.now());
  try {
    await print(startMessage(config, served.url) + (firstKey?.message ?? ""));
    return undefined;
  } catch (error) {
    if (firstKey === undefined) throw error;
    // The secret was not printed, or only a part of it, so nobody can use the key.
    await served.keys.updateKey(firstKey.id, { revokedAt: clock.now() });
    return new Failure(
      `${errorMessage(error)}; the first key could not be printed and is revoked; create another with petstore keys create`,
    );
  }
}

function startMessage(config: Config, url: string): string {
  const origin = url.slice(0, -BASE_PATH.length);
  const { data, rateLimits } = describeStorage(config);
  const rows = [
    ["  API", url],
    ["  Docs", `${origin}/docs`],
    ["  OpenAPI", `${origin}/openapi.json`],
    ["  Data", data],
    ["  Rate limits", rateLimits],
  ];
  return `Petstore is serving ${config.environment}. Stop it with Ctrl-C.\n\n${columns(rows)}\n`;
}

/** On a new database only: once a key has existed, no later start creates one. */
async function createFirstKey({ keys, url }: Served, config: Config, now: number) {
  const secret = generateSecret(config.environment);
  const newKey = { name: "first key", plan: "free", createdAt: now } as const;
  const key = await keys.createFirstKey(newKey, hashSecret(secret));
  if (key === undefined) return undefined;
  const limits = formatLimits(limitsOf(key, config.plans));
  const summary = `Created the first API key (${key.plan} plan, ${limits}):`;
  return { id: key.id, message: `${summary}\n${formatSecret(secret, url)}\n` };
}

function startDetails(config: Config, url: string): Readonly<Record<string, unknown>> {
  const { environment, dataDir, databaseUrl } = config;
  const { data, rateLimits } = describeStorage(config);
  return {
    version: packageJson.version,
    environment,
    url,
    data: databaseUrl === undefined ? `SQLite in ${resolve(dataDir)}` : data,
    rateLimits,
    pid: process.pid,
  };
}

/** The runtime's errors name neither the address nor a remedy. Rethrows every other error. */
function listenFailure(error: unknown, { host, port }: Config): Failure {
  if (!isListenError(error)) throw error;
  const reason = LISTEN_REASONS[systemErrorField(error, "code") ?? "ENOTFOUND"] ?? errorMessage(error);
  return new Failure(`cannot listen on ${host} port ${port}: ${reason}`);
}

/** For an unknown host name the runtime reports "Failed to listen" without a code. */
function isListenError(error: unknown): boolean {
  if (error instanceof Error && error.message.startsWith("Failed to listen")) return true;
  return ["listen", "getaddrinfo"].includes(systemErrorField(error, "syscall") ?? "");
}

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use; stop the other program or choose another --port",
  EADDRNOTAVAIL: "this machine does not have that address; see --host",
  ENOTFOUND: "there is no such host; see --host",
  EINVAL: "there is no such host; see --host",
  EACCES: "permission denied; ports below 1024 need privileges, so choose another --port",
};
