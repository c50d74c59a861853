import { expect, test } from "bun:test";
import { cleanUpAfterAll, InProcessCli } from "./cli.ts";

cleanUpAfterAll();

const tokenIn = (text: string) => /^ {2}(pet_admin_[\w-]{43})$/m.exec(text)?.[1] ?? "";

test("operators create, list, rotate and revoke, by name and by identifier, here and on a server elsewhere", async () => {
  const cli = new InProcessCli();
  expect(await cli.out("operators list")).toStartWith("There are no operators in production");
  await using server = await cli.serve();
  const created = await cli.run("operators create --name ann --role support");
  expect(created.out).toStartWith("Created operator 2 ann with the role support in production");
  const ann = tokenIn(created.out);
  const listed = await cli.out("operators list");
  expect(listed).toMatch(/^ID +NAME +ROLE +STATE +TOKEN +TOKEN CREATED +LAST USED +CREATED$/m);
  expect(listed).toMatch(/^2 +ann +support +active +pet_admin_.{4}….{4} /m);
  expect(listed).not.toContain(ann);
  expect(await cli.err("operators create --name ann --role viewer")).toBe("there is an operator ann already");

  const remote = (...argv: string[]) => cli.run([...argv, "--server", server.adminUrl, "--admin-token", ann]);
  expect((await remote("operators", "create", "--name", "bob", "--role", "admin")).err).toBe(
    "this needs the role admin; ann has support",
  );
  const rotated = await remote("operators", "rotate", "ann");
  expect(rotated.code).toBe(0);
  expect((await remote("keys", "list")).err).toStartWith("the token is wrong or was replaced");
  expect(tokenIn(rotated.out)).not.toBe(ann);

  const again = await cli.json<{ token: string; operator: object }>("operators rotate 2");
  expect(again).toMatchObject({ token: expect.stringMatching(/^pet_admin_/), operator: { name: "ann" } });
  const metrics = await cli.json<{ token: string }>("operators create --name prometheus --role metrics");
  const itself = ["--server", server.adminUrl, "--admin-token", metrics.token];
  const own = await cli.run(["operators", "rotate", "3", ...itself]);
  expect(own.out).toStartWith("Operator 3 prometheus has a new token.");
  expect(await cli.run("operators revoke ann")).toMatchObject({
    code: 0,
    out: "Operator 2 ann is revoked.\n",
  });
  cli.clock.advance(1_000);
  expect(await cli.out("operators revoke 2")).toStartWith("Operator 2 ann was already revoked");
  expect(await cli.err("operators revoke admin")).toBe(
    "operator admin is the last admin; create another one first",
  );
  expect(await cli.err("operators rotate bob")).toStartWith("operator bob does not exist in production");
  expect(await cli.out("audit --action operator.revoked")).toContain("operator 2");
});

test("a name that cannot be one is a usage error", async () => {
  const cli = new InProcessCli();
  for (const name of ["token", "7", "Ann"]) {
    const { code, err } = await cli.run(["operators", "create", "--name", name, "--role", "admin"]);
    expect([code, err]).toEqual([2, expect.stringContaining("it must be a letter")]);
  }
  expect((await cli.run("operators create --name ann --role owner")).code).toBe(2);
});
