import type { ResponseOf, Webhook } from "../../operator/operations.ts";
import { Failure } from "../command.ts";
import { locationOf } from "../calls/call.ts";
import { operationCommand } from "../operation-command.ts";
import { columns, table, type TableColumn } from "../output.ts";

const SERVER_ASKED = "It asks a running server on this data directory or database, or the one of --server.";

const COLUMNS: readonly TableColumn<Webhook["deliveries"][number]>[] = [
  ["TIME", ({ at }, screen) => screen.time(at)],
  ["ENTRY", ({ id }) => `${id}`, "number"],
  ["EVENT", ({ type }) => type],
  ["MS", ({ durationMs }) => `${durationMs}`, "number"],
  ["RESPONSE", ({ status, error }) => `${status ?? error}`],
];

export const webhookShow = operationCommand({
  name: "webhook show",
  operation: "getWebhook",
  summary: "Show what is delivered to the webhook, and what waits",
  description: `Shows where audit entries are delivered, how many wait, and the last attempts of all servers, newest first. ${SERVER_ASKED}`,
  text({ url, events, waiting, oldestWaitingAt, deliveries }, { values, context: { screen } }) {
    if (url === null) return `There is no webhook in ${locationOf(values)}: --webhook-url is not set.\n`;
    const oldest = oldestWaitingAt === null ? "" : `, the oldest since ${screen.time(oldestWaitingAt)}`;
    const facts = columns([
      ["URL", url],
      ["Events", events.join(", ")],
      ["Waiting", `${waiting}${oldest}`],
    ]);
    return deliveries.length === 0 ? facts : `${facts}\n${table(COLUMNS, deliveries, screen)}`;
  },
});

export const webhookTest = operationCommand<"testWebhook", Record<never, never>, ResponseOf<"testWebhook">>({
  name: "webhook test",
  operation: "testWebhook",
  description: `Sends an event of the type webhook.test to the webhook, once, and prints the status, the time and the first line of the response. Fails if the status is not 2xx. ${SERVER_ASKED}`,
  async request(call) {
    const result = await call("testWebhook");
    if (!result.isDelivered) throw new Failure(describeResponse(result));
    return result;
  },
  text: (result) => `${describeResponse(result)}\n`,
});

/** `https://hooks.example.com/ responds 200 in 12 ms: ok`. */
function describeResponse({ url, status, error, durationMs, response }: ResponseOf<"testWebhook">): string {
  if (status === null) return `${url} does not respond: ${error}`;
  return `${url} responds ${status} in ${durationMs} ms${response === null ? "" : `: ${response}`}`;
}
