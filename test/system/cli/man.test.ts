import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { executable, MANDOC } from "../../../trials/harness/programs.ts";
import { COMMANDS } from "../../../src/cli/commands.ts";
import packageJson from "../../../package.json" with { type: "json" };
import { cleanUp, InProcessCli, cliDirectory } from "../../cli/cli.ts";

afterAll(cleanUp);

const { code, out: page } = await new InProcessCli().run("man");
const file = join(cliDirectory(), "petstore.1");
writeFileSync(file, page);

function mandoc(...argv: string[]) {
  const { exitCode, stdout } = Bun.spawnSync([executable(MANDOC), ...argv]);
  return { exitCode, out: stdout.toString() };
}

/** A terminal shows bold text as a character, a backspace and the same character. */
function withoutOverstrikes(text: string): string {
  return text.split("\b").reduce((shown, part) => shown.slice(0, -1) + part);
}

test("mandoc finds nothing to warn about", async () => {
  expect(code).toBe(0);
  expect(mandoc("-T", "lint", "-W", "warning", file)).toEqual({ exitCode: 0, out: "" });
});

test("the page has every command and every option, with its help", async () => {
  const { out } = mandoc("-T", "utf8", "-O", "width=1000", file);
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
  expect(page).toContain(`.Os Petstore ${packageJson.version}\n`);
  const [, date = ""] = /^\.Dd (.*)$/m.exec(page) ?? [];
  expect(new Date(`${date} UTC`).toISOString().slice(0, 10)).toBe(packageJson.releaseDate);
});
