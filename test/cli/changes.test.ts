import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { COMMANDS } from "../../src/cli/commands.ts";
import { type AdminOperation, changesData } from "../../src/operator/operation-rows.ts";
import { ADMIN_OPERATIONS, type AdminOperationId } from "../../src/operator/operations.ts";
import { cleanUpAfterAll, InProcessCli } from "./cli.ts";

cleanUpAfterAll();

/** A command line for every operation that changes data. */
const LINES = {
  createOperator: "operators create --name ann --role admin",
  updateOperator: "operators update ann --role support",
  rotateOperator: "operators rotate 1",
  revokeOperator: "operators revoke ann --yes",
  rotateServerSecret: "server-secret rotate",
  createKey: "keys create --name a --plan free",
  updateKey: "keys update 1 --name b",
  rotateKey: "keys rotate 1",
  disableKey: "keys disable 1",
  enableKey: "keys enable 1",
  revokeKey: "keys revoke 1 --yes",
  unbanKey: "keys unban 1",
  updatePlan: "plans update free --per-minute 61",
  updateBanRules: "ban-rules update --strikes 20",
  createPet: "pets add --name Rex --category 7",
  updatePet: "pets update 1 --name Rex",
  deletePet: "pets delete 1 --yes",
  updateOrder: "orders update 1 completed --yes",
} as const satisfies { readonly [Id in AdminOperationId]?: string };

/** They belong to a session of the console, and no command calls them. */
const OF_SESSIONS: ReadonlySet<string> = new Set(["createSession", "deleteSession", "deleteSessions"]);

const operations: Readonly<Record<string, AdminOperation>> = ADMIN_OPERATIONS;

test("every operation that changes data is tried by a command that exists", () => {
  const changing = Object.entries(operations).flatMap(([id, row]) => (changesData(row) ? [id] : []));
  expect(changing.filter((id) => !OF_SESSIONS.has(id)).toSorted()).toEqual(Object.keys(LINES).toSorted());
  const names = COMMANDS.map(({ name }) => name);
  for (const line of Object.values(LINES))
    expect([line, names.some((name) => line.startsWith(`${name} `) || line === name)]).toEqual([line, true]);
});

test.each(Object.entries(LINES))(
  "%s in a directory without a database is stored, or fails and creates nothing: petstore %s",
  async (id, line) => {
    const cli = new InProcessCli();
    const { code, err } = await cli.run(line);
    if (code === 0) {
      const entries = await cli.json<{ action: string }[]>("audit");
      expect(entries.map(({ action }) => action)).toEqual([operations[id]?.audited ?? ""]);
      return;
    }
    expect([code, err]).toEqual([1, expect.stringMatching(/does not exist|there is no|No /i)]);
    expect(existsSync(cli.dataDir)).toBeFalse();
  },
);

test("an import to a directory without a database is stored", async () => {
  const cli = new InProcessCli();
  cli.input = '{"name":"Rex","categoryId":7}\n';
  expect(await cli.run("import -")).toMatchObject({ code: 0 });
  expect(await cli.json("pets list")).toMatchObject([{ id: 1, name: "Rex" }]);
});
