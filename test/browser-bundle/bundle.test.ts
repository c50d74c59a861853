import { expect, test } from "bun:test";
import { assetOf, loadBundle } from "../../src/browser-bundle/bundle.ts";

test("an asset is named after the beginning of the SHA-256 of its text", () => {
  const { path } = assetOf("/assets/console-", "js", "x");
  const hash = new Bun.CryptoHasher("sha256").update("x").digest("hex");
  expect(path).toBe(`/assets/console-${hash.slice(0, 16)}.js`);
});

test.each(["console", "docs"] as const)(
  "the script and the style sheet of %s are minified, and without checks for developers",
  async (name) => {
    const { script, style } = await loadBundle(name);
    for (const text of [script, style]) expect(text.length / text.split("\n").length).toBeGreaterThan(1_000);
    // Where an element is made: its position and its component.
    expect(script).not.toMatch(/,void 0,(?:!0|!1),void 0,this\)/);
  },
  60_000,
);
