import { afterAll, expect } from "bun:test";
import { shownWebhookUrl } from "../../src/domain/webhooks.ts";
import { accept, startReceiver, webhookFlags } from "../../trials/harness/webhook-receiver.ts";
import { test } from "./browser.ts";
import { consoleFixture } from "./console-fixture.ts";

const receiver = startReceiver(() => new Response("no such hook\n", { status: 404 }));
afterAll(receiver.close);
const { server, open, failOnProblems } = await consoleFixture({}, webhookFlags(receiver, "operator.*"));
failOnProblems();

test("settings show what is delivered to the webhook and what waits, and send a test event", async () => {
  const { page, look } = await open("/settings");
  const section = page.getByRole("region", { name: "Webhook" });
  await section.getByText(shownWebhookUrl(receiver.url)).waitFor();
  await server.newOperator("ann", "viewer");
  await section.getByText("1, the oldest since").waitFor();
  const table = section.getByRole("table", { name: "Last deliveries" });
  await table.getByText("operator.created").first().waitFor();
  await table.getByText("404").first().waitFor();
  const status = section.getByRole("status");
  await section.getByRole("button", { name: "Send a test event" }).click();
  await status.getByText("no such hook").waitFor();
  // The waits between repeats grow, so it comes back soon.
  receiver.behave(accept);
  await section.getByRole("button", { name: "Send a test event" }).click();
  await status.getByText("200").waitFor();
  await section.getByText("Nothing").waitFor();
  await table.getByText("200").waitFor();
  expect(await look("settings-webhook")).toEqual([]);
  expect(receiver.unsigned).toEqual([]);
});
