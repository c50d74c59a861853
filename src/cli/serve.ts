import { resolve } from "node:path";
import type { App } from "../app.ts";
import { type Config, configOf, describeStorage, plainTextConnections } from "../config/config.ts";
import { LISTEN_PROBLEMS } from "../config/network.ts";
import { SAVED_OPTIONS, SETTINGS, shownSettings } from "../config/options.ts";
import { formatOptions, type Variables } from "../config/parse-options.ts";
import { switchOption } from "../config/value-types.ts";
import type { TlsFiles } from "../config/tls.ts";
import { UsageError } from "../config/usage-error.ts";
import type { LogDetails } from "../observe/log-events.ts";
import type { Log } from "../observe/log.ts";
import { AdminListenError } from "../operator/admin-listener.ts";
import type { AdminListener } from "../operator/start-admin.ts";
import { BASE_PATH } from "../domain/constants.ts";
import { errorMessage, systemErrorField } from "./arguments.ts";
import { defineCommand, Failure, type SavedSettings } from "./command.ts";
import { printWithFirstKey } from "./first-key.ts";
import { columns } from "./output.ts";

import packageJson from "../../package.json" with { type: "json" };

export const serve = defineCommand({
  name: "serve",
  summary: "Serve the API",
  description:
    "Serves one environment until a stop signal (Ctrl-C, SIGTERM, SIGHUP). It finishes the requests in progress, then exits. If no API key exists yet, it creates one: it prints the key if standard output is a terminal, and otherwise writes it to a file in --data. The log goes to standard error.",
  options: {
    ...SETTINGS,
    "new-database": switchOption(
      "Begin with an empty database in --data although other files there say that there was one",
    ),
  },
  examples: [
    "petstore serve",
    "petstore serve --env staging",
    "petstore serve --env-file /etc/petstore/production.env",
    "petstore serve --host 0.0.0.0 --port 443 --tls-cert cert.pem --tls-key key.pem",
    "petstore serve --host 0.0.0.0 --public-url https://api.example.com --trust-proxy 10.0.0.0/8",
    "petstore serve --free-limits 120/5000 --ban-length 15m",
  ],
  async run({ values, source }, context) {
    if (!source("tls-cert") !== !source("tls-key")) {
      return new UsageError("--tls-cert and --tls-key belong together; one of them is missing");
    }
    const config = { ...configOf(values), allowsNewDatabase: values["new-database"] };
    const tlsError = config.tls && (await checkTls(config.tls));
    if (tlsError) return tlsError;
    const stopSignal = context.stopSignal(config.drainDelayMs);
    const log = context.openLog({ format: values["log-format"], level: values["log-level"] });
    const { startApp } = await import("../app.ts");
    const { envFileVariables } = context;
    const shown = shownSettings(SETTINGS, values, { source, envFileVariables });
    const app = await startApp(config, { log, shownSettings: shown }).catch((error: unknown) =>
      listenFailure(error, config),
    );
    if (app instanceof Failure) return app;
    let stoppingSince: number;
    try {
      await saveSettings(app, formatOptions(SAVED_OPTIONS, values), log);
      const admin = app.admin && (await describeAdmin(app.admin, context.screen.isTerminal));
      // One write: whoever reads "Rate limits" has read all of it, and the server accepts requests.
      const message = startMessage(config, app.url, admin);
      const file = await printWithFirstKey({ startMessage: message, app, config, context });
      if (file instanceof Failure) return file;
      if (file !== undefined) log.event("key.first-created", { file });
      logPlainText(config, context.variables, log);
      if (app.admin) log.event("admin.started", { url: app.admin.url, tokenFile: app.admin.tokenFile });
      log.event("server.started", startDetails(config, app.url));
      const end = await Promise.race([stopSignal, app.failed]);
      if (end instanceof Error) return new Failure(end.message);
      log.event("server.stopping", { signal: end });
      stoppingSince = performance.now();
    } finally {
      await app.close();
    }
    log.event("server.stopped", { afterMs: Math.round(performance.now() - stoppingSince) });
    return undefined;
  },
});

async function checkTls(files: TlsFiles): Promise<UsageError | undefined> {
  const { readTlsCredentials } = await import("../config/tls.ts");
  const credentials = readTlsCredentials(files);
  return credentials instanceof UsageError ? credentials : undefined;
}

/** For the commands that show limits and URLs, which do without them. */
async function saveSettings({ settings, url }: App, saved: SavedSettings, log: Log): Promise<void> {
  try {
    await settings.saveSettings({ ...saved, "public-url": url });
  } catch (error) {
    log.event("settings.save-failed", { error });
  }
}

function startMessage(config: Config, url: string, admin = "off"): string {
  const origin = url.slice(0, -BASE_PATH.length);
  const { data, rateLimits } = describeStorage(config);
  const rows = [
    ["  API", url],
    ["  Docs", `${origin}/docs`],
    ["  OpenAPI", `${origin}/openapi.json`],
    ["  Admin", admin],
    ["  Data", data],
    ["  Rate limits", rateLimits],
  ];
  return `Petstore is serving ${config.environment}. Stop it with Ctrl-C.\n\n${columns(rows)}\n`;
}

/** Standard output that is not a terminal often becomes a log that others read, so it gets no code. */
async function describeAdmin(admin: AdminListener, isTerminal: boolean): Promise<string> {
  const { url, tokenFile } = admin;
  // A server starts on a full disk too.
  if (isTerminal) return admin.createSignInUrl().catch(() => url);
  return tokenFile === undefined ? url : `${url} (token in ${tokenFile})`;
}

function logPlainText(config: Config, variables: Variables, log: Log): void {
  for (const connection of plainTextConnections(config, variables)) {
    if (connection === "clients") log.event("connections.plain-text", { host: config.host });
    else if (connection === "operators") log.event("admin.plain-text", { host: config.admin?.host });
    else log.event(connection === "database" ? "database.plain-text" : "valkey.plain-text");
  }
}

function startDetails(config: Config, url: string): LogDetails<"server.started"> {
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
  if (error instanceof AdminListenError) {
    const reason = listenReason(error.cause).replace(/--(?:port|host)/, "--admin-address");
    return new Failure(`${error.message}: ${reason}`);
  }
  if (!isListenError(error)) throw error;
  return new Failure(`cannot listen on ${host} port ${port}: ${listenReason(error)}`);
}

function listenReason(error: unknown): string {
  return LISTEN_PROBLEMS[systemErrorField(error, "code") ?? "ENOTFOUND"]?.join("; ") ?? errorMessage(error);
}

/** For an unknown host name the runtime reports "Failed to listen" without a code. */
function isListenError(error: unknown): boolean {
  if (error instanceof Error && error.message.startsWith("Failed to listen")) return true;
  return ["listen", "getaddrinfo"].includes(systemErrorField(error, "syscall") ?? "");
}
