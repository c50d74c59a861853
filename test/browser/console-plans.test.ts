import { expect } from "bun:test";
import { test } from "./browser.ts";
import { consoleFixture } from "./console-fixture.ts";

const { server, open, failOnProblems } = await consoleFixture();
failOnProblems();

const plan = async (name: string) => {
  const { items } = (await server.admin("GET", "/plans")).json as { items: { plan: string }[] };
  return items.find((each) => each.plan === name);
};

test("Plans: an admin changes the limits of a plan and the ban rules", async () => {
  const { page } = await open("/plans");
  const row = (name: string) => page.getByRole("row", { name });
  await row("Free").getByText("1,000").waitFor();
  await page.getByRole("button", { name: "Edit Free" }).click();
  await page.getByLabel("Requests per minute").fill("75");
  // Somebody else changes the other limit meanwhile.
  await server.admin("PATCH", "/plans", { plan: "free", perDay: 900 });
  await page.getByRole("button", { name: "Save" }).click();
  await row("Free").getByText("75").waitFor();
  expect(await plan("free")).toMatchObject({ perMinute: 75, perDay: 900 });

  await page.getByRole("button", { name: "Edit ban rules" }).click();
  await page.getByLabel("First ban, in seconds").fill("90");
  await page.getByLabel("Longest ban, in seconds").fill("60");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("must be at least the length of a first ban").waitFor();
  await server.admin("PATCH", "/ban-rules", { strikes: 9 });
  await page.getByLabel("Longest ban, in seconds").fill("3600");
  await page.getByLabel("Grace period").fill("0.5");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("0.5 seconds", { exact: true }).waitFor();
  const { json } = await server.admin("GET", "/ban-rules");
  expect(json).toMatchObject({ strikes: 9, graceMs: 500, lengthMs: 90_000, maxLengthMs: 3_600_000 });
});
