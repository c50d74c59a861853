import { resolve } from "node:path";
import type { App } from "../../app.ts";
import { configOf } from "../../config/config.ts";
import { type PlainTextConnection, plainTextConnections } from "../../config/plain-text.ts";
import { ADMIN_LISTEN_FLAGS, LISTEN_FLAGS, listenProblems } from "../../config/listen-problems.ts";
import {
  ACCEPT_PRIMARY_OPTION,
  type ADDRESS_OPTIONS,
  NEW_DATABASE_OPTION,
  SETTINGS,
  type OIDC_OPTIONS,
  type WEBHOOK_OPTIONS,
} from "../../config/options.ts";
import { shownSettings } from "../../config/shown-settings.ts";
import type { ValuesOf } from "../../config/parse-options.ts";
import { UsageError } from "../../config/usage-error.ts";
import { webhookSecrets } from "../../config/value-types.ts";
import type { DataLocation } from "../../data-location.ts";
import { removeFile, replaceFile } from "../../runtime/own-files.ts";
import type { ApiKey } from "../../domain/api-keys.ts";
import { limitsOf } from "../../domain/plans.ts";
import { generateSecret, toNewSecret } from "../../domain/secrets.ts";
import { UnknownPrimary } from "../../domain/timeline.ts";
import { PUBLIC_URL } from "../../domain/stored-values.ts";
import type { LogDetails } from "../../observe/log-events.ts";
import type { Log } from "../../observe/log.ts";
import { byServer } from "../../background/attribution.ts";
import { AdminListenError } from "../../operator/admin-listener.ts";
import type { AdminListener } from "../../operator/start-admin.ts";
import { docsUrl, siteUrl } from "../../public/site-urls.ts";
import { scheduler } from "../../runtime/scheduler.ts";
import { systemErrorField } from "../../runtime/system-error.ts";
import { errorMessage } from "../error-message.ts";
import { type Context, defineCommand, Failure } from "../command.ts";
import { columns, formatLimits, formatSecret, formatSecretFile } from "../output.ts";

import packageJson from "../../../package.json" with { type: "json" };

export const serve = defineCommand({
  name: "serve",
  summary: "Serve the API",
  description:
    "Serves one environment until a stop signal (Ctrl-C, SIGTERM, SIGHUP). It finishes the requests in progress, then exits. If no API key exists yet, it creates one, unless --no-first-key is set: it prints the key if standard output is a terminal, and otherwise writes it to a file in --data. The log goes to standard error.",
  data: "migrates",
  options: {
    ...SETTINGS,
    ...ACCEPT_PRIMARY_OPTION,
    ...NEW_DATABASE_OPTION,
  },
  examples: [
    "petstore serve",
    "petstore serve --env staging",
    "petstore serve --env-file /etc/petstore/production.env",
    "petstore serve --host 0.0.0.0 --port 443 --tls-cert cert.pem --tls-key key.pem",
    "petstore serve --host 0.0.0.0 --public-url https://api.example.com --trust-proxy 10.0.0.0/8",
  ],
  async run({ values, source }, context) {
    rejectIncompleteSettings(values);
    const config = configOf(values);
    const { data, host, port } = config;
    // Wrong files of TLS are reported before any data is touched.
    if (config.tls) (await import("../../config/tls.ts")).readTlsFiles(config.tls);
    const stopSignal = context.stopSignal(config.drainDelayMs);
    const log = context.openLog({ format: values["log-format"], level: values["log-level"] });
    const { startApp } = await import("../../app.ts");
    const { envFileVariables } = context;
    const shown = shownSettings(SETTINGS, values, { source, envFileVariables });
    const start = () => startApp(config, { log, shownSettings: shown });
    const app = await startWithPrimary(start, stopSignal, log).catch((error: unknown) => {
      throw listenFailure(error, { host, port });
    });
    let stoppingSince: number;
    try {
      await saveUrl(app, log);
      const admin = app.admin && (await describeAdmin(app.admin, context.screen.isTerminal));
      // It is one write: a program that reads "Rate limits" has read all of it, and the server accepts requests.
      const message = startMessage(data, app.url, admin);
      const isBetweenLines = context.errorStream.isStandardOutput && !context.screen.isTerminal;
      // The log has all of it, and programs parse each line of JSON.
      const print = isBetweenLines && values["log-format"] !== "text" ? async () => {} : context.print;
      const file = values["no-first-key"]
        ? await print(message)
        : await printWithFirstKey(message, app, { data, context: { ...context, print }, log });
      if (typeof file === "string") log.event("key.first-created", { file });
      logPlainText(plainTextConnections(config, context.variables), {
        host,
        adminHost: config.admin?.host,
        log,
      });
      if (app.admin) log.event("admin.started", { url: app.admin.url, tokenFile: app.admin.tokenFile });
      log.event("server.started", startDetails(data, app.url));
      const end = await Promise.race([stopSignal, app.failed]);
      if (end instanceof Error) throw new Failure(end.message);
      log.event("server.stopping", { signal: end });
      stoppingSince = performance.now();
    } finally {
      await app.close();
    }
    log.event("server.stopped", { afterMs: Math.round(performance.now() - stoppingSince) });
    return undefined;
  },
});

export function rejectIncompleteSettings(
  values: ValuesOf<typeof ADDRESS_OPTIONS & typeof OIDC_OPTIONS & typeof WEBHOOK_OPTIONS>,
): void {
  if ((values["tls-cert"] === undefined) !== (values["tls-key"] === undefined))
    throw new UsageError("--tls-cert and --tls-key belong together; one of them is missing");
  if ((values["webhook-url"] === undefined) !== (values["webhook-secret"] === undefined))
    throw new UsageError(
      `--webhook-url and --webhook-secret-file belong together; one of them is missing. The file has ${webhookSecrets.expected}`,
    );
  const provider = {
    "--oidc-issuer": values["oidc-issuer"],
    "--oidc-client-id": values["oidc-client-id"],
    "--oidc-client-secret-file": values["oidc-client-secret"],
    "--oidc-role": values["oidc-role"],
  };
  const missing = Object.entries(provider).flatMap(([flag, value]) => (value === undefined ? flag : []));
  if (missing.length > 0 && missing.length < Object.keys(provider).length)
    throw new UsageError(
      `${Object.keys(provider).join(", ")} belong together; missing: ${missing.join(", ")}`,
    );
}

/** Saves the URL, which commands show. They work without it. */
async function saveUrl({ storedValues, url }: App, log: Log): Promise<void> {
  try {
    await storedValues.saveValues({ [PUBLIC_URL]: url });
  } catch (error) {
    log.event("settings.save-failed", { error });
  }
}

/**
 * Prints the start message of a server, with a key on a new database: once a key has existed, no later start creates
 * one. Standard output that is not a terminal often becomes a log that others read, so the secret goes to a file.
 * Resolves with the path of that file.
 */
async function printWithFirstKey(
  message: string,
  { keys, url, policy }: App,
  { data, context, log }: { readonly data: DataLocation; readonly context: Context; readonly log: Log },
): Promise<string | undefined> {
  const { clock, screen, print } = context;
  const secret = generateSecret(data.environment);
  const newKey = { name: "first key", plan: "free", createdAt: clock.now() } as const;
  let key: ApiKey | undefined;
  let problem = "";
  try {
    key = await keys.createFirstKey(newKey, toNewSecret(secret), byServer(clock));
  } catch (error) {
    // It serves already: requests get 503 until the database is back.
    log.event("key.first-failed", { error });
    problem = `The database failed before it confirmed the first API key: ${errorMessage(error)}.\nIf there is no key, create one: petstore keys create --name NAME --plan free\n`;
  }
  if (key === undefined) {
    await print(message + problem);
    return undefined;
  }
  const summary = `Created the first API key (${key.plan} plan, ${formatLimits(limitsOf(key.plan, key.limits, policy.current.plans))})`;
  const file = screen.isTerminal ? undefined : resolve(data.directory.files.firstKey);
  let isWritten = false;
  try {
    if (file !== undefined) replaceFile(file, `${secret}\n`);
    isWritten = file !== undefined;
    const text =
      file === undefined ? `:\n${formatSecret(secret, url)}` : ` in a file:\n${formatSecretFile(file, url)}`;
    await print(`${message}${summary}${text}\n`);
    return file;
  } catch (error) {
    await keys.updateKey(key.id, { revokedAt: clock.now() }, byServer(clock));
    if (file !== undefined && isWritten) removeFile(file);
    throw new Failure(
      `${errorMessage(error)}; nobody received the first key, so it is revoked; create another with petstore keys create`,
    );
  }
}

/** Where the rate limits are counted, for people. */
function describeCounting({ postgres, address }: DataLocation): string {
  return postgres === undefined ? "in the server process" : address;
}

function startMessage(data: DataLocation, url: string, admin = "off"): string {
  const rows = [
    ["  API", url],
    ["  Docs", docsUrl(url)],
    ["  OpenAPI", siteUrl(url, "/openapi.json")],
    ["  Admin", admin],
    ["  Data", data.address],
    ["  Rate limits", describeCounting(data)],
  ];
  return `Petstore is serving ${data.environment}. Stop it with Ctrl-C.\n\n${columns(rows)}\n`;
}

/** Standard output that is not a terminal often becomes a log that others read, so it gets no code. */
async function describeAdmin(admin: AdminListener, isTerminal: boolean): Promise<string> {
  const { url, tokenFile } = admin;
  // A server starts on a full disk too.
  if (isTerminal) return admin.createSignInUrl().catch(() => url);
  return tokenFile === undefined ? url : `${url} (token in ${tokenFile})`;
}

function logPlainText(
  connections: readonly PlainTextConnection[],
  {
    host,
    adminHost,
    log,
  }: { readonly host: string; readonly adminHost: string | undefined; readonly log: Log },
): void {
  for (const connection of connections) {
    if (connection === "connections") log.event("connections.plain-text", { host });
    else if (connection === "admin") log.event("admin.plain-text", { host: adminHost });
    else log.event(`${connection}.plain-text`);
  }
}

function startDetails(location: DataLocation, url: string): LogDetails<"server.started"> {
  const { environment, directory, postgres, address } = location;
  return {
    version: packageJson.version,
    environment,
    url,
    data: postgres === undefined ? `SQLite in ${resolve(directory.path)}` : address,
    rateLimits: describeCounting(location),
    pid: process.pid,
  };
}

/** The runtime's errors name neither the address nor a remedy. Every other error stays as it is. */
const FIND_PRIMARY_EVERY_MS = 2_000;

/** Starts when the primary of PostgreSQL is known. Rejects with the reason if the process is to stop before that. */
async function startWithPrimary(
  start: () => Promise<App>,
  stopSignal: Promise<unknown>,
  log: Log,
): Promise<App> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      const cause = error instanceof Error ? error.cause : undefined;
      if (!(cause instanceof UnknownPrimary)) throw error;
      if (attempt === 1) log.event("database.primary-unknown", { cause: cause.message });
      const sleep = scheduler.sleep(FIND_PRIMARY_EVERY_MS).then(() => "continue");
      if ((await Promise.race([sleep, stopSignal])) !== "continue") throw error;
    }
  }
}

function listenFailure(
  error: unknown,
  { host, port }: { readonly host: string; readonly port: number },
): unknown {
  if (error instanceof AdminListenError)
    return new Failure(`${error.message}: ${listenReason(error.cause, ADMIN_LISTEN_FLAGS)}`);
  if (!isListenError(error)) return error;
  return new Failure(`cannot listen on ${host} port ${port}: ${listenReason(error, LISTEN_FLAGS)}`);
}

function listenReason(error: unknown, flags: typeof LISTEN_FLAGS): string {
  const code = systemErrorField(error, "code") ?? "ENOTFOUND";
  return listenProblems(flags)[code]?.join("; ") ?? errorMessage(error);
}

/** For an unknown host name the runtime reports "Failed to listen" without a code. */
function isListenError(error: unknown): boolean {
  if (error instanceof Error && error.message.startsWith("Failed to listen")) return true;
  return ["listen", "getaddrinfo"].includes(systemErrorField(error, "syscall") ?? "");
}
