import { afterAll, expect } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { startService } from "../service.ts";
import { test, untilTrue } from "./browser.ts";
import { consoleFixture } from "./console-fixture.ts";

/*
 * Over plain HTTP a browser has a clipboard on the loopback address only. The names that end in .test are this machine,
 * and no loopback address to a browser.
 */
const { server, browser } = await consoleFixture({}, ["--admin-hostname", "console.test"]);
const service = await startService();
afterAll(() => service.stop());
const elsewhere = (url: string, host: string) => url.replace(/(?<=\/\/)[^:/]+/, host);

/** Keeps what is selected whenever something is copied: the selection of a field is none of the document. */
const LISTEN = `globalThis.copied = [];
  document.oncopy = ({ target: { value, selectionStart, selectionEnd } }) =>
    void copied.push(value?.slice(selectionStart, selectionEnd) ?? getSelection().toString());`;

/** Presses the button in both kinds of browsers: those that copy what is selected, and those that forbid it. */
async function expectCopied(page: Page, button: Locator, text: string): Promise<void> {
  expect(await page.evaluate("isSecureContext || navigator.clipboard !== undefined")).toBe(false);
  await page.evaluate(LISTEN);
  await button.click();
  await untilTrue(page, "copied.length === 1");
  await page.evaluate("getSelection().removeAllRanges(); document.execCommand = () => false");
  await button.click();
  await page.getByText("Press Ctrl-C").first().waitFor();
  await page.keyboard.press("Control+c");
  await untilTrue(page, "copied.length === 2");
  expect(await page.evaluate("copied")).toEqual([text, text]);
  await page.evaluate("delete document.execCommand");
}

test("without a clipboard a new secret and its command are copied, or selected so that Ctrl-C copies them", async () => {
  const signInUrl = elsewhere(await server.signInUrl("/keys/new"), "console.test");
  const { page, close } = await browser.open(signInUrl);
  await page.getByLabel("Name").fill("copied");
  await page.getByRole("button", { name: "Create key" }).click();
  const secret = await page.getByLabel("Secret", { exact: true }).inputValue();
  expect(secret).toMatch(/^pet_live_/);
  await expectCopied(page, page.getByRole("button", { name: "Copy secret" }), secret);
  const command = `curl ${server.apiUrl}/pets \\\n  -H "Authorization: Bearer ${secret}"`;
  await expectCopied(page, page.getByRole("button", { name: "Copy curl command" }), command);
  // What Ctrl-C has copied is copied: the dialog closes without asking.
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("heading", { name: "copied" }).waitFor();
  const id = /\d+$/.exec(page.url())?.[0] ?? "";
  await expectCopied(page, page.getByRole("button", { name: `Copy ${id}`, exact: true }), id);
  await close();
});

test("Ctrl-C alone copies a secret, and so the dialog does not ask", async () => {
  const { page, close } = await browser.open(elsewhere(await server.signInUrl("/keys/1"), "console.test"));
  await page.getByRole("button", { name: "Rotate secret" }).click();
  await page.getByRole("button", { name: "Rotate secret" }).last().click();
  const field = page.getByLabel("Secret", { exact: true });
  await field.waitFor();
  await page.evaluate(`${LISTEN} document.execCommand = () => false`);
  await page.getByRole("button", { name: "Copy secret" }).click();
  await page.getByText("Press Ctrl-C").waitFor();
  await page.keyboard.press("Control+c");
  await untilTrue(page, "copied.length === 1");
  expect(await page.evaluate<string[]>("copied")).toEqual([await field.inputValue()]);
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await close();
});

test("the same with the code of the documentation", async () => {
  const url = elsewhere(service.url, "docs.test").replace("/v1", "/docs/reference/listPets");
  const { page, close } = await browser.open(url);
  const block = page.locator(".example > .code:visible");
  const code = (await block.locator("pre").textContent()) ?? "";
  expect(code).toContain("curl");
  await expectCopied(page, block.locator(".copy"), code.trimEnd());
  await close();
});
