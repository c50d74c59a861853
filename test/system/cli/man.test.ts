import { afterAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { executable, MANDOC } from "../../../trials/harness/programs.ts";
import { COMMANDS } from "../../../src/cli/commands.ts";
import packageJson from "../../../package.json" with { type: "json" };
import { cleanUp, InProcessCli, temporaryDirectory } from "../../cli/cli.ts";

afterAll(cleanUp);

async function page(): Promise<string> {
  const { code, out } = await new InProcessCli().run(["man"]);
  expect(code).toBe(0);
  const file = join(temporaryDirectory(), "petstore.1");
  writeFileSync(file, out);
  return file;
}

function mandoc(...argv: string[]) {
  const { exitCode, stdout } = Bun.spawnSync([executable(MANDOC), ...argv]);
  return { exitCode, out: stdout.toString() };
}

/** A terminal shows bold text as a character, a backspace and the same character. */
function withoutOverstrikes(text: string): string {
  return text.split("\b").reduce((shown, part) => shown.slice(0, -1) + part);
}

test("mandoc finds nothing to warn about", async () => {
  expect(mandoc("-T", "lint", "-W", "warning", await page())).toEqual({ exitCode: 0, out: "" });
});

test("the page has every command and every option, with its help", async () => {
  const { out } = mandoc("-T", "utf8", "-O", "width=1000", await page());
  const text = withoutOverstrikes(out).replaceAll(/\s+/g, " ");
  for (const { name, summary, options } of COMMANDS) {
    expect(text).toContain(`petstore ${name} `);
    expect(text).toContain(`${summary}.`);
    for (const [flag, { help }] of Object.entries(options)) {
      expect(text).toContain(`--${flag}`);
      expect(text).toContain(help.replaceAll(/\s+/g, " "));
    }
  }
});

test("it names the release and its date", async () => {
  const text = readFileSync(await page(), "utf8");
  expect(text).toContain(`.Os Petstore ${packageJson.version}\n`);
  const [, date = ""] = /^\.Dd (.*)$/m.exec(text) ?? [];
  expect(new Date(`${date} UTC`).toISOString().slice(0, 10)).toBe(packageJson.releaseDate);
});
