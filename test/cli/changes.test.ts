import { expect, test } from "bun:test";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { COMMANDS } from "../../src/cli/command-table.ts";
import { type AdminOperation, changesData } from "../../src/operator/operations/rows.ts";
import { ADMIN_OPERATIONS, type AdminOperationId } from "../../src/operator/operations.ts";
import { bearer } from "../bearer.ts";
import { cleanUpAfterAll, InProcessCli } from "./cli.ts";

cleanUpAfterAll();

/** A command line for every operation that changes data. */
const LINES = {
  createOperator: "operators create --name ann --role admin",
  updateOperator: "operators update ann --role support",
  rotateOperator: "operators rotate 1",
  revokeOperator: "operators revoke ann --yes",
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
  updatePet: "pets update 1 --name Bella",
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
  "%s in a new database is stored, or names what does not exist: petstore %s",
  async (id, line) => {
    const cli = new InProcessCli();
    const { code, err } = await cli.run(line);
    if (code === 0) {
      const entries = await cli.json<{ action: string }[]>("audit");
      expect(entries.map(({ action }) => action)).toEqual([operations[id]?.audited ?? ""]);
      return;
    }
    expect([code, err]).toEqual([1, expect.stringMatching(/ does not exist/)]);
  },
);

test("an import to a directory without a database is stored", async () => {
  const cli = new InProcessCli({ hasData: false });
  cli.input = '{"name":"Rex","categoryId":7}\n';
  expect(await cli.run("import -")).toMatchObject({ code: 0 });
  expect(await cli.json("pets list")).toMatchObject([{ id: 1, name: "Rex" }]);
});

/** What a command says of a change whose response is lost. */
const UNKNOWN = {
  createOperator: "the operator was created; see petstore operators list",
  updateOperator: "the operator was updated; see petstore operators list",
  rotateOperator: "the operator was rotated; see petstore operators list",
  revokeOperator: "the operator was revoked; see petstore operators list",
  createKey: "the key was created; see petstore keys list",
  updateKey: "the key was updated; see petstore keys list",
  rotateKey: "the key was rotated; see petstore keys list",
  disableKey: "the key was disabled; see petstore keys list",
  enableKey: "the key was enabled; see petstore keys list",
  revokeKey: "the key was revoked; see petstore keys list",
  unbanKey: "the key was unbanned; see petstore keys list",
  updatePlan: "the plan was updated; see petstore plans list",
  updateBanRules: "the ban rules were updated; see petstore ban-rules show",
  createPet: "the pet was created; see petstore pets list",
  updatePet: "the pet was updated; see petstore pets list",
  deletePet: "the pet was deleted; see petstore pets list",
  updateOrder: "the order was updated; see petstore orders list",
} as const satisfies Record<keyof typeof LINES, string>;

/** How the response to a change is lost. */
const LOSSES: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "the connection ends": ({ req }) => req.socket.destroy(),
  "the connection ends within the response": (response) => {
    response.writeHead(200, { "Content-Length": 100 });
    response.write("{", () => response.req.socket.destroy());
  },
  "a gateway gives up": (response) => response.writeHead(502).end("<h1>Bad gateway</h1>"),
  "the response has nothing": (response) => response.writeHead(200).end(),
  "the response has something else": (response) => response.writeHead(200).end('{"other":1}'),
};

/** A proxy that passes everything on, and loses the responses to changes. */
async function startProxy(server: string, lose: (response: ServerResponse) => void) {
  const proxy = createServer(async (request, response) => {
    const { url = "", method = "GET" } = request;
    const { authorization = "" } = request.headers;
    const body = method === "GET" ? null : await text(request);
    const headers = { authorization, "content-type": "application/json" };
    const forwarded = await fetch(server + url, { method, headers, body });
    if (method === "GET") response.writeHead(forwarded.status).end(await forwarded.text());
    else lose(response);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const address = proxy.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return { origin: `http://127.0.0.1:${port}`, [Symbol.dispose]: () => void proxy.close() };
}

test.each(Object.entries(LOSSES))(
  "a change whose response is lost was made, and its command says that this is not known: %s",
  async (loss, lose) => {
    const cli = new InProcessCli();
    await cli.run("pets add --name Rex --category 7");
    await cli.run("pets add --name Mia --category 7 --status available");
    await using server = await cli.serve();
    const { token } = await cli.json("operators create --name bob --role admin");
    const headers = { ...bearer(server.secret), "Content-Type": "application/json" };
    await fetch(`${server.url}/store/orders`, { method: "POST", headers, body: '{"petId":2}' });
    using proxy = await startProxy(server.adminUrl, lose);
    const asOperator = { PETSTORE_SERVER: proxy.origin, PETSTORE_TOKEN: String(token) };
    for (const [id, line] of Object.entries(LINES)) {
      // For an operation without a body the status says everything.
      if (loss.startsWith("the response has") && operations[id]?.success.body === undefined) continue;
      const [unknown = ""] = Object.entries(UNKNOWN).flatMap(([other, each]) => (other === id ? [each] : []));
      const { code, err } = await cli.run(line, asOperator);
      expect([id, code, err]).toEqual([id, 1, expect.stringMatching(/; it is not known whether /)]);
      expect(err).toEndWith(`it is not known whether ${unknown}`);
    }
    const made = await cli.json<{ action: string }[]>("audit --limit 100");
    const actions = new Set(made.map(({ action }) => action));
    // No key is banned.
    const expected = Object.keys(LINES).flatMap((id) =>
      id === "unbanKey" || (loss.startsWith("the response has") && operations[id]?.success.body === undefined)
        ? []
        : [operations[id]?.audited ?? ""],
    );
    expect([...actions]).toEqual(expect.arrayContaining(expected));
  },
);

test("a change that was not sent is no unknown one", async () => {
  const cli = new InProcessCli();
  const unused = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { origin } = unused.url;
  await unused.stop(true);
  const asOperator = { PETSTORE_SERVER: origin, PETSTORE_TOKEN: "pet_admin_".padEnd(53, "a") };
  const { code, err } = await cli.run(LINES.createKey, asOperator);
  expect([code, err]).toEqual([1, expect.stringContaining("does not respond (ECONNREFUSED)")]);
  expect(err).not.toContain("known");
});
