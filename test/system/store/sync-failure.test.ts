import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { startPetstore } from "../../../trials/harness/petstore.ts";
import { executable, STRACE } from "../../../trials/harness/programs.ts";
import { bearer } from "../../bearer.ts";
import { until } from "../../timing.ts";

test("a server whose disk does not confirm a write stops, leaves its database as it is, and starts with what was acknowledged", async () => {
  const directory = temporaryDirectory("sync-failure");
  const flags = ["--data", directory, "--port", "0", "--admin-address", "off"];
  // Each thread of the pool fails at its third sync.
  const failing = ["-f", "-qq", "-o", "/dev/null", "-e", "inject=fdatasync:error=EIO:when=3"];
  const server = await startPetstore(flags, [executable(STRACE), ...failing, "-e", "trace=fdatasync"]);
  const headers = { ...bearer(server.key ?? ""), "Content-Type": "application/json" };
  const create = async (name: string, url = server.url) => {
    const body = JSON.stringify({ name, categoryId: 1 });
    return (await fetch(`${url}/pets`, { method: "POST", headers, body })).status;
  };
  const acknowledged: string[] = [];
  const database = join(directory, "production.db");
  const versionOf = (file: string) => [statSync(file).size, statSync(file).mtimeMs].join(" ");
  const before = versionOf(database);
  let status = 201;
  for (let n = 0; status === 201 && n < 20; n++) {
    status = await create(`pet ${n}`);
    if (status === 201) acknowledged.push(`pet ${n}`);
  }
  expect(status).toBe(503);
  await until(() => server.log.some(({ event }) => event === "database.sync-failed"), 5_000);
  expect(await server.stop()).toBe(1);
  expect(versionOf(database)).toBe(before);
  expect(statSync(`${database}-wal`).size).toBeGreaterThan(0);

  const next = await startPetstore(flags);
  const pets = Object((await (await fetch(`${next.url}/pets?limit=100`, { headers })).json()) as object);
  const names: string[] = Object.values(pets).map((pet) => Object(pet).name);
  expect(names.slice(0, acknowledged.length)).toEqual(acknowledged);
  expect(await create("another", next.url)).toBe(201);
  await next.stop();
}, 60_000);
