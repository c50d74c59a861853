import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { userName } from "../../src/cli/user-name.ts";
import { cleanUp, spawnPetstore, temporaryDirectory } from "./cli.ts";

// Processes take long to start on a busy machine.
setDefaultTimeout(30_000);
afterAll(cleanUp);

const USERS = `root:x:0:0:root:/root:/bin/bash
ann:x:1000:1000:Ann,,,:/home/ann:/bin/sh
# a comment
+::::::
`;

test.each([
  [0, "root"],
  [1000, "ann"],
  [100, "user 100"],
])("the name of user %p is %p", (uid, name) => {
  const file = join(temporaryDirectory(), "passwd");
  writeFileSync(file, USERS);
  expect(userName(uid, file)).toBe(name);
});

test("without a file of users, a user has a number", () => {
  expect(userName(1000, join(temporaryDirectory(), "missing"))).toBe("user 1000");
});

test("the audit trail has the user who ran a command, whatever the variable USER says", async () => {
  const cwd = temporaryDirectory();
  const run = async (...argv: string[]) => {
    const child = spawnPetstore(argv, { cwd, variables: { USER: "eve", LOGNAME: "eve" } });
    expect(await child.exited).toBe(0);
    return child.stdout.text();
  };
  await run("keys", "create", "--name", "app", "--plan", "free");
  const [entry] = JSON.parse(await run("audit", "--json"));
  expect(entry.actor).toEqual({ kind: "command line", name: userName() });
  expect(entry.actor.name).not.toBe("eve");
});
