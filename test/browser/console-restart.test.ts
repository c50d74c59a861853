import { expect, test } from "bun:test";
import { consoleFixture, TEST_TIMEOUT_MS } from "./console-fixture.ts";

const fixture = consoleFixture();

test(
  "without the server the last data stay, dimmed, below one banner; after a restart the page goes on, signed in",
  async () => {
    const { secret } = await fixture.server.newKey({ name: "survivor" });
    const opened = await fixture.open("/keys");
    const { page } = opened;
    await page.getByRole("link", { name: "survivor" }).waitFor();
    await fixture.server.stop();
    await page.getByText("The server does not respond. You see the last data.").waitFor();
    await page.getByText(/Next try in \d+ s/).waitFor();
    expect(await page.getByRole("link", { name: "survivor" }).isVisible()).toBe(true);
    expect(await page.evaluate("getComputedStyle(document.querySelector('main')).opacity")).toBe("0.55");
    await opened.look("server-gone").catch(() => []);
    await fixture.server.start();
    await page.getByRole("button", { name: "Try now" }).click();
    await page.getByText("The server does not respond").waitFor({ state: "detached" });
    expect((await fixture.server.client(secret, "GET", "/pets")).status).toBe(200);
    await page.getByText("1/1,000").waitFor();
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);

test(
  "the overview is live: a request appears without a reload",
  async () => {
    const { secret } = await fixture.server.newKey({ name: "live one" });
    const opened = await fixture.open("/");
    const { page } = opened;
    await page.getByText("requests now").waitFor();
    expect((await fixture.server.client(secret, "GET", "/pets")).status).toBe(200);
    await page.getByRole("link", { name: "live one" }).waitFor();
    await page.getByText("Requests by outcome as a table").click();
    await page.getByRole("table", { name: "Requests by outcome" }).waitFor();
    expect(opened.takeProblems()).toEqual([]);
    await opened.close();
  },
  TEST_TIMEOUT_MS,
);
