/* The parts of an app that not every server has. Each imports its code when it is used, so that others start sooner. */

import { resolve } from "node:path";
import type { Adapters } from "./adapters/open-adapters.ts";
import type { Config } from "./config/config.ts";
import { type FollowedSetting, followFiles, followSetting } from "./config/follow-files.ts";
import { WEBHOOK_OPTIONS } from "./config/options.ts";
import { readFromFile } from "./config/parse-options.ts";
import type { Clock } from "./domain/ports/clock.ts";
import type { HttpServer, TlsCertificate } from "./http1/index.ts";
import { reportSettingFiles } from "./observe/event-reports.ts";
import type { Log } from "./observe/log.ts";
import type { Tracer, TracerOptions } from "./observe/tracer.ts";
import type { WebhookSender } from "./background/webhook-delivery.ts";
import type { AdminCredentials } from "./operator/start-admin.ts";
import { type ScheduledTimer, scheduler } from "./runtime/scheduler.ts";

export interface Closable {
  close(): void | Promise<void>;
}

/** What every part of an app is made of. */
export interface PartContext {
  readonly adapters: Adapters;
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
}

/** Returns undefined without TLS. */
export async function readCertificate({ tls }: Config): Promise<TlsCertificate | undefined> {
  return tls && (await import("./config/tls.ts")).readTlsFiles(tls);
}

/** Returns undefined if no request is traced. */
export async function startTracer(
  { adapters, config, log }: PartContext,
  routes: TracerOptions["routes"],
): Promise<Tracer | undefined> {
  if (config.tracing === undefined) return undefined;
  const { Tracer } = await import("./observe/tracer.ts");
  return new Tracer({
    ...config.tracing,
    omit: config.accessLogOmit,
    environment: config.environment,
    serverId: adapters.servers.self.id,
    isTls: config.tls !== undefined,
    routes,
    log,
  });
}

/** Returns undefined if the listener for operators is off. */
export async function openCredentials(context: PartContext): Promise<AdminCredentials | undefined> {
  const { adapters, config, clock, log } = context;
  const { operators } = adapters;
  const { admin } = config;
  if (admin === undefined) return undefined;
  const { importTokens } = await import("./operator/sign-in/setting-tokens.ts");
  const { openFirstToken } = await import("./operator/sign-in/token.ts");
  const followTokens = await importTokens(admin, { operators, clock, log });
  const tokenFile =
    admin.token === undefined
      ? await openFirstToken({ directory: config.directory, operators, clock, log })
      : admin.tokenFile && resolve(admin.tokenFile);
  return { followTokens, tokenFile };
}

/** The secrets with which events are signed. */
export function followWebhookSecrets({
  config: { webhook },
  log,
}: PartContext): FollowedSetting<readonly Uint8Array[]> {
  return followSetting(
    { setting: "webhook-secret-file", file: webhook?.secretFile, first: webhook?.secrets ?? [] },
    (file) => readFromFile(WEBHOOK_OPTIONS["webhook-secret"], file),
    reportSettingFiles(log),
  );
}

/** Returns undefined if no webhook is configured. */
export async function startWebhook(
  { adapters, config, clock, log }: PartContext,
  secrets: FollowedSetting<readonly Uint8Array[]>,
): Promise<WebhookSender | undefined> {
  if (config.webhook === undefined) return undefined;
  const { WebhookSender } = await import("./background/webhook-delivery.ts");
  const { webhooks, audit, retentionNow, servers } = adapters;
  return new WebhookSender({
    ...config.webhook,
    secrets: () => secrets.current,
    environment: config.environment,
    webhooks,
    audit,
    isOnlyServer: config.databaseUrl === undefined,
    server: servers.self.id,
    clock,
    retentionNow,
    log,
  });
}

/** How long the second file of a certificate may take to follow the first. */
const COMPLETE_MS = 30_000;

/** Returns undefined without TLS. */
export async function followCertificate(
  { config: { tls: files }, log }: PartContext,
  servers: readonly Pick<HttpServer, "setTlsCertificate">[],
): Promise<Closable | undefined> {
  if (files === undefined) return undefined;
  const { readTlsFiles } = await import("./config/tls.ts");
  let invalidTimer: ScheduledTimer | undefined;
  const stop = followFiles(Object.values(files), {
    read: () => readTlsFiles(files),
    onChange(contents) {
      invalidTimer?.close();
      for (const server of servers) server.setTlsCertificate(contents);
      log.event("tls.certificate-changed", { file: files.certFile });
    },
    // A program that renews a certificate writes one of the files after the other.
    onError(error) {
      invalidTimer?.close();
      log.event("tls.certificate-incomplete", { error });
      invalidTimer = scheduler.setTimeout(() => log.event("tls.certificate-invalid", { error }), COMPLETE_MS);
      invalidTimer.unref();
    },
  });
  return {
    close() {
      stop();
      invalidTimer?.close();
    },
  };
}
