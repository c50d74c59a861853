import * as history from "./history-schemas.ts";
import { ok, tagged } from "./operation-rows.ts";
import * as servers from "./server-schemas.ts";

/** The operations on servers: what they are, what they do and how they are set. */
export const SERVER_OPERATIONS = tagged("Server", {
  getServer: {
    method: "GET",
    path: "/server",
    summary: "Show the server and what it depends on",
    description: "Describes the server that responds, and the state of its database and its rate limiter.",
    needsRunningServer: true,
    success: ok("The server", servers.Server),
  },
  listServers: {
    method: "GET",
    path: "/servers",
    summary: "List the servers on the database",
    description:
      "Lists all servers, and their figures together. A server that stops is removed; one that was killed is `lost` after 5 seconds, for an hour. While the database is unavailable, the list is that of before.",
    success: ok("The servers", servers.ServerList),
  },
  getWebhook: {
    method: "GET",
    path: "/webhook",
    summary: "Show the webhook and its last deliveries",
    description:
      "Shows where audit entries are delivered, how many wait, and the last attempts of all servers.",
    success: ok("The webhook", servers.Webhook),
    needsRunningServer: true,
  },
  testWebhook: {
    method: "POST",
    path: "/webhook/test",
    audited: "nothing",
    summary: "Send a test event to the webhook",
    description:
      "The server that responds sends an event of the type `webhook.test`, once, and waits for up to 10 seconds for the response.",
    success: ok("The response of the receiver", servers.WebhookTest),
    errors: ["no_webhook"],
    needsRunningServer: true,
  },
  getOverview: {
    method: "GET",
    cost: 2,
    path: "/overview",
    summary: "Show requests and response times",
    description:
      "Live series of all servers on the database, each since it started: steps of 5 seconds for up to an hour, steps of a minute for up to 24 hours. Requests and connections are sums; response times are those of the slowest server.",
    query: { range: history.Range },
    success: ok("The overview", history.Overview),
  },
  getSeries: {
    method: "GET",
    path: "/series",
    summary: "Show requests and response times of one server",
    description:
      "The part of the overview that the server that responds adds. Servers ask one another for it, through the database.",
    query: { range: history.Range },
    needsRunningServer: true,
    success: ok("The series", history.ServerSeries),
  },
  getSettings: {
    method: "GET",
    path: "/settings",
    summary: "List settings",
    description: "Lists the settings of the server that responds, each with its source. Secrets are masked.",
    needsRunningServer: true,
    success: ok("The settings", servers.Settings),
  },
});
