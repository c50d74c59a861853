import { array, boolean, type Infer, integer, line, nullable, object, text } from "../../api/schema.ts";
import { WEBHOOK_TEST_TIMEOUT_MS } from "../../domain/webhooks.ts";
import { count, ok, tagged, time } from "./rows.ts";

const responseOfReceiver = {
  status: nullable(
    integer({ min: 100, max: 599, description: "Status of the response" }),
    "Null without a response",
  ),
  error: nullable(line(300, "Why there was no response"), "Null if there was one"),
  durationMs: count("Milliseconds until the response, or until the attempt failed"),
};

export const Webhook = object("Where audit entries are delivered", {
  url: nullable(
    line(2_000, "URL of the receiver; a hash stands for its path and query"),
    "Null if none is configured on the server that responds",
  ),
  events: array(line(100), {
    json: "The actions that are delivered, such as `key.banned`, `operator.*` or `*`",
  }),
  waiting: count("Entries that wait for their delivery, at most 1,000"),
  oldestWaitingAt: nullable(time("Time of the oldest entry that waits"), "Null if none waits"),
  deliveries: array(
    object("An attempt to deliver an entry", {
      id: count("Identifier of the audit entry"),
      type: line(100, "Action of the entry"),
      at: time("When the attempt began"),
      ...responseOfReceiver,
    }),
    { json: "The last attempts, newest first" },
  ),
});
export type Webhook = Infer<typeof Webhook>;

export const WebhookTest = object("The response to a test event", {
  url: line(2_000, "URL of the receiver; a hash stands for its path and query"),
  isDelivered: boolean("Whether the status is 2xx"),
  ...responseOfReceiver,
  response: nullable(text(2_000, "First line of the response"), "Null if it is empty"),
});

/** The operations on the webhook. */
export const WEBHOOK_OPERATIONS = tagged("Server", {
  getWebhook: {
    method: "GET",
    path: "/webhook",
    summary: "Show the webhook and its last deliveries",
    description:
      "Shows where audit entries are delivered, how many wait, and the last attempts of all servers.",
    success: ok("The webhook", Webhook),
    needsRunningServer: true,
  },
  testWebhook: {
    method: "POST",
    path: "/webhook/test",
    audited: "nothing",
    summary: "Send a test event to the webhook",
    description: `The server that responds sends an event of the type \`webhook.test\`, once, and waits for up to ${WEBHOOK_TEST_TIMEOUT_MS / 1_000} seconds for the response.`,
    success: ok("The response of the receiver", WebhookTest),
    errors: ["no_webhook"],
    needsRunningServer: true,
  },
});
