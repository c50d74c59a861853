import { beforeEach, expect, test } from "bun:test";
import { cleanUpAfterAll, InProcessCli, wrongUsage } from "./cli.ts";

cleanUpAfterAll();

let cli: InProcessCli;
beforeEach(() => void (cli = new InProcessCli()));

test("plans list and plans update: the limits of all servers, without a server", async () => {
  expect((await cli.run("plans list")).out).toBe(`PLAN       PER MINUTE  PER DAY  KEYS
free               60    1,000     0
pro               300   10,000     0
business        1,000  100,000     0
anonymous         300   10,000     -
`);
  expect(await cli.run("plans update free --per-minute 70 --per-day 900")).toEqual({
    code: 0,
    out: "Plan free: 70 requests per minute, 900 per day. Running servers apply it within a second.\n",
    err: "",
  });
  expect(await cli.json("plans update anonymous --per-day 5")).toEqual({
    plan: "anonymous",
    perMinute: 300,
    perDay: 5,
    keys: null,
  });
  await cli.run("keys create --name app --plan free");
  expect(await cli.json("keys show 1")).toMatchObject({ limits: { perMinute: 70, perDay: 900 } });
  expect(await cli.json("plans list")).toMatchObject([{ plan: "free", keys: 1 }, {}, {}, { perDay: 5 }]);
});

test("ban-rules show and ban-rules update: durations as in the settings", async () => {
  expect((await cli.run("ban-rules show")).out).toBe(`Strikes       10
Grace period  1s
First ban     5m
Longest ban   40m
`);
  const { out } = await cli.run("ban-rules update --strikes 3 --grace 0 --length 90s --max-length 2h");
  expect(out).toStartWith(
    "Strikes       3\nGrace period  0\nFirst ban     90s\nLongest ban   2h\nRunning servers",
  );
  expect(await cli.json("ban-rules show")).toEqual({
    strikes: 3,
    graceMs: 0,
    lengthMs: 90_000,
    maxLengthMs: 7_200_000,
  });
});

test.each([
  ["plans update", "plans update needs PLAN: free, pro, business or anonymous"],
  ["plans update gold --per-day 1", 'PLAN is "gold"; it must be free, pro, business or anonymous'],
  ["plans update free", "plans update needs --per-minute or --per-day"],
  ["ban-rules update", "ban-rules update needs --strikes, --grace, --length or --max-length"],
  ["ban-rules update --max-length 1s", "--max-length must be at least the length of a first ban"],
])("%s is rejected", async (line, message) => {
  const { code, out, err } = await cli.run(line);
  expect([code, out]).toEqual([wrongUsage("").code, ""]);
  expect(err).toContain(message);
});
