import type { WebhookOptions, WebhookSender } from "../background/webhook-delivery.ts";
import { followSetting } from "../config/follow-files.ts";
import { WEBHOOK_OPTIONS } from "../config/options.ts";
import { readFromFile } from "../config/parse-options.ts";
import { reportSettingFiles } from "../observe/event-reports.ts";
import type { Closable, ServerContext } from "./context.ts";

interface WebhookSettings extends Pick<WebhookOptions, "url" | "events" | "isOnlyServer"> {
  readonly secrets: readonly Uint8Array[];
  /** The path of the file that contains the secrets, if they are in one. */
  readonly secretFile?: string;
}

/** Delivers audit entries, and follows the secrets with which they are signed. */
export async function startWebhook(
  { secrets: first, secretFile: file, ...settings }: WebhookSettings,
  { adapters, environment, clock, log, servers }: ServerContext,
): Promise<Closable & { readonly sender: WebhookSender }> {
  const { WebhookSender } = await import("../background/webhook-delivery.ts");
  const { webhooks, audit, retentionNow } = adapters;
  const secrets = followSetting(
    { setting: "webhook-secret-file", file, first },
    (path) => readFromFile(WEBHOOK_OPTIONS["webhook-secret"], path),
    reportSettingFiles(log),
  );
  const sender = new WebhookSender({
    ...settings,
    secrets: () => secrets.current,
    environment,
    webhooks,
    audit,
    server: servers.self.id,
    clock,
    retentionNow,
    log,
  });
  return {
    sender,
    async close() {
      await sender.close();
      secrets.close();
    },
  };
}
