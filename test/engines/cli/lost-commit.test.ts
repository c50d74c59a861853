import { afterAll, expect, test } from "bun:test";
import { connect, createServer, type Socket } from "node:net";
import { once } from "node:events";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { cleanUp, InProcessCli } from "../../cli/cli.ts";

afterAll(cleanUp);

/**
 * A proxy before PostgreSQL. While `isLosing`, it passes the commit of a change on, and nothing that follows back. With
 * `isClosing`, it closes the connection then.
 */
async function startProxy(url: URL) {
  const state = { isLosing: false, isClosing: false, commits: 0 };
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    const server = connect(Number(url.port || 5432), url.hostname);
    let isChange = false;
    let isLost = false;
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => void [client.destroy(), server.destroy()]);
    }
    client.on("data", (bytes) => {
      const text = bytes.toString("latin1");
      isChange ||= /INSERT INTO audit/.test(text);
      if (state.isLosing && isChange && text.includes("COMMIT")) {
        isLost = true;
        state.commits++;
      }
      server.write(bytes);
    });
    server.on("data", (bytes) => {
      if (!isLost) client.write(bytes);
      else if (state.isClosing) client.destroy();
    });
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const address = proxy.address();
  const behind = new URL(url);
  behind.host = `127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  const close = () => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  };
  return { state, url: behind.href, [Symbol.dispose]: close };
}

test.each([
  ["keys create --name lost --plan free", "the key was created; see petstore keys list", "key.created"],
  ["keys rotate 1", "the key was rotated; see petstore keys list", "key.rolled"],
  ["keys revoke 1 --yes", "the key was revoked; see petstore keys list", "key.revoked"],
  ["pets add --name Rex --category 7", "the pet was created; see petstore pets list", "pet.created"],
])(
  "the response to the commit of %s is lost: it is not known whether it was made",
  async (line, unknown, made) => {
    const database = await postgresUrl();
    const cli = new InProcessCli();
    const direct = { PETSTORE_DATABASE_URL: database };
    await cli.run("migrate", direct);
    expect(await cli.run("keys create --name first --plan free", direct)).toMatchObject({ code: 0 });
    using proxy = await startProxy(new URL(database));
    const behind = { PETSTORE_DATABASE_URL: proxy.url };
    expect(await cli.run("keys list", behind)).toMatchObject({ code: 0 });
    proxy.state.isLosing = true;
    const failed = await cli.run(line, behind);
    expect(proxy.state.commits).toBe(1);
    expect(failed).toMatchObject({ code: 1, out: "" });
    expect(failed.err).toEndWith(`; it is not known whether ${unknown}`);
    const [{ action = "" } = {}] = JSON.parse((await cli.run("audit --json", direct)).out);
    expect(action).toBe(made);
  },
);

test("the response to the commit of a restore is lost: its data are there, and it says that this is not known", async () => {
  const cli = new InProcessCli();
  const backups = temporaryDirectory("backups");
  expect(await cli.run("pets add --name Rex --category 7")).toMatchObject({ code: 0 });
  expect(await cli.run(`backup ${backups}`)).toMatchObject({ code: 0 });
  const database = await postgresUrl();
  using proxy = await startProxy(new URL(database));
  Object.assign(proxy.state, { isLosing: true, isClosing: true });
  const failed = await cli.run(`restore ${backups} --database-url ${proxy.url}`);
  expect(proxy.state.commits).toBe(1);
  expect(failed.code).toBe(1);
  expect(failed.err).toMatch(/; it is not known whether the backup was restored; see petstore audit$/);
  expect(await cli.out("pets list", { PETSTORE_DATABASE_URL: database })).toContain("Rex");
});
