import { Rejection } from "../../api/errors.ts";
import { isDelivered } from "../../domain/webhooks.ts";
import { formatOptionalTime, formatTime } from "../../text/formatting.ts";
import type { AdminHandlers } from "./context.ts";
import type { Services } from "../services.ts";

export function webhookHandlers({ webhook }: Pick<Services, "webhook">) {
  return {
    async getWebhook() {
      if (webhook === undefined)
        return { url: null, events: [], waiting: 0, oldestWaitingAt: null, deliveries: [] };
      const { url, events, waiting, deliveries } = await webhook.describe();
      return {
        url,
        events,
        waiting: waiting.count,
        oldestWaitingAt: formatOptionalTime(waiting.oldestAt),
        deliveries: deliveries.map(({ id, type, at, status, error, durationMs }) => {
          return { id, type, at: formatTime(at), status, error, durationMs };
        }),
      };
    },

    async testWebhook() {
      if (webhook === undefined)
        return new Rejection("no_webhook", "The server has no webhook: --webhook-url is not set.");
      const { line, ...result } = await webhook.test();
      return { url: webhook.url, isDelivered: isDelivered(result), ...result, response: line || null };
    },
  } satisfies Partial<AdminHandlers>;
}
