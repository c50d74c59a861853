/* What operators and other servers learn of this server. */

import type { ChangeFollower } from "../changes/follow-changes.ts";
import { reportedSettings } from "../config/reported-settings.ts";
import type { WebhookSender } from "../background/webhook-delivery.ts";
import type { ActivityCollector } from "../domain/servers.ts";
import type { AppMetrics } from "../observe/metrics.ts";
import { activityOf } from "../observe/server-activity.ts";
import type { Setting } from "../operator/operations.ts";
import type { ServerServices } from "../operator/services.ts";
import type { Closable, ServerContext } from "./context.ts";
import type { Observers } from "./observers.ts";
import type { PublicListener } from "./public-listener.ts";

interface ReportedParts {
  readonly listener: Omit<PublicListener, "close">;
  readonly metrics: AppMetrics;
  readonly shownSettings: readonly Setting[];
  /** Whether there is a listener for operators, which reports its own URL. */
  readonly hasAdmin: boolean;
}

/** Gives the other servers and operators a report of what this server does. */
export function reportActivity(
  activity: Pick<ActivityCollector, "add">,
  { listener, metrics, shownSettings, hasAdmin }: ReportedParts,
): Closable {
  const settings = reportedSettings(shownSettings, listener.url);
  const remove = activity.add(() => ({
    ...activityOf(listener.server, metrics),
    ...settings,
    ...(!hasAdmin && { adminUrl: null }),
  }));
  return { close: remove };
}

interface ServiceParts extends Omit<ReportedParts, "hasAdmin"> {
  readonly isDemo: boolean;
  readonly observers: Pick<Observers, "requestLog">;
  /** Undefined if no webhook is configured. */
  readonly webhook: WebhookSender | undefined;
  readonly changes: ChangeFollower;
}

/** What operators and other servers may ask about this server. */
export function serverServices(parts: ServiceParts, context: ServerContext): ServerServices {
  const { listener, metrics, shownSettings, isDemo, observers, webhook, changes } = parts;
  const { adapters, environment, clock, log, servers } = context;
  const { server, url: publicUrl, address } = listener;
  return {
    ...adapters,
    environment,
    isDemo,
    servers,
    metrics,
    requestLog: observers.requestLog,
    webhook,
    publicUrl,
    address,
    startedAt: clock.now(),
    shownSettings,
    valuesInEffect: {
      port: `${server.port}`,
      "public-url": publicUrl,
      "max-connections": `${server.maxConnections}`,
    },
    clock,
    log,
    isDraining: () => server.isShuttingDown,
    applyChanges: changes.applyNow,
  };
}
