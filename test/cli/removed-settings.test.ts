import { expect, test } from "bun:test";
import { SETTINGS } from "../../src/config/options.ts";
import { variableOf } from "../../src/config/parse-options.ts";
import { REMOVED_SETTINGS } from "../../src/config/removed-settings.ts";
import { storePolicy } from "../../trials/harness/policy.ts";
import { cleanUpAfterAll, InProcessCli, wrongUsage } from "./cli.ts";

cleanUpAfterAll();

test.each([...REMOVED_SETTINGS])(
  "--%s: no server starts with it, and the message says what to do instead",
  async (name, text) => {
    const cli = new InProcessCli();
    expect(Object.keys(SETTINGS)).not.toContain(name);
    for (const words of [[`--${name}=1`], [`--${name}`, "1"]])
      expect(await cli.run(["serve", ...words])).toEqual(wrongUsage(`--${name} ${text}`));
    const variable = variableOf(name);
    expect(await cli.run("serve", { [variable]: "1" })).toEqual(wrongUsage(`${variable} ${text}`));
  },
);

/** The commands of the messages, with values. */
const commands = [...REMOVED_SETTINGS].flatMap(([name, text]) => {
  const [, command] = /\bpetstore ((?:plans|ban-rules) .*?) or /.exec(text) ?? [];
  return command === undefined ? [] : [[name, command.replaceAll(/\bN\b/g, "7").replace("TIME", "50m")]];
});

test("each limit and ban rule that was a setting has a command, which changes it", async () => {
  expect(commands.map(([name]) => name)).toEqual([
    "free-limits",
    "pro-limits",
    "business-limits",
    "anonymous-limits",
    "ban-strikes",
    "ban-grace",
    "ban-length",
    "ban-max-length",
  ]);
  const cli = new InProcessCli();
  await storePolicy(["--data", cli.dataDir], {});
  for (const [, command = ""] of commands) expect((await cli.run(command)).err).toBe("");
  const limits = { perMinute: 7, perDay: 7 };
  expect(await cli.json("plans list")).toMatchObject([limits, limits, limits, limits]);
  const rules = { strikes: 7, graceMs: 3_000_000, lengthMs: 3_000_000, maxLengthMs: 3_000_000 };
  expect(await cli.json("ban-rules show")).toEqual(rules);
});
