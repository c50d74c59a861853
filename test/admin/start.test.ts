import { afterEach, expect, spyOn, test } from "bun:test";
import { networkInterfaces } from "node:os";
import { type App, startApp } from "../../src/app.ts";
import { DataDirectory } from "../../src/data-directory.ts";
import { silentLog } from "../../src/observe/log.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { configIn } from "../service.ts";
import { TestClock } from "../test-clock.ts";
import { ActivityCollector } from "../../src/domain/servers.ts";
import { ADMIN_CONFIG } from "./admin-service.ts";

const apps: App[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

type OnListening = (listener: "url" | "adminUrl", origin: string) => void;

/** Starts a server, and calls `onListening` with the origin of each listener as soon as it is open. */
async function start(port: number, onListening: OnListening, host = ADMIN_CONFIG.host) {
  using saveUrl = spyOn(DataDirectory.prototype, "saveUrl");
  saveUrl.mockImplementation((origin) => {
    onListening("url", origin);
    return () => {};
  });
  const { add } = ActivityCollector.prototype;
  using adding = spyOn(ActivityCollector.prototype, "add");
  adding.mockImplementation(function (this: ActivityCollector, read) {
    const { adminUrl } = read();
    if (adminUrl) onListening("adminUrl", adminUrl);
    return add.call(this, read);
  });
  const config = { ...configIn(temporaryDirectory("start")), admin: { ...ADMIN_CONFIG, host, port } };
  apps.push(await startApp(config, { clock: new TestClock(), log: silentLog }));
}

test("/healthz responds 200 only when the listener for operators is open, too", async () => {
  const events: unknown[] = [];
  const health = Promise.withResolvers<void>();
  await start(0, (listener, origin) => {
    events.push(listener);
    if (listener === "adminUrl") return;
    const probe = fetch(`${origin}/healthz`).then(({ status }) => void events.push(status));
    health.resolve(probe);
  });
  await health.promise;
  expect(events).toEqual(["url", "adminUrl", 200]);
});

test.each(["127.0.0.1", "127.0.0.2", "0.0.0.0", "::"])(
  "a server that listens for operators on %s says at which address other machines reach it",
  async (host) => {
    const urls: string[] = [];
    await start(0, (listener, origin) => void (listener === "adminUrl" && urls.push(origin)), host);
    const addresses = Object.values(networkInterfaces()).flatMap((each = []) => each);
    const outside = addresses.find(({ internal, family }) => !internal && family === "IPv4")?.address;
    const { port } = new URL(apps.at(-1)?.admin?.url ?? "");
    const name = host.startsWith("127.") ? host : (outside ?? (host === "::" ? "[::]" : host));
    expect(urls).toEqual([`http://${name}:${port}`]);
  },
);

test("a server that stops listens for operators no longer", async () => {
  await start(0, () => {});
  const url = `${apps[0]?.admin?.url}/livez`;
  expect((await fetch(url)).status).toBe(200);
  await apps.shift()?.close();
  await expect(fetch(url)).rejects.toThrow();
});

/** Resolves to the status of /healthz while the listener for operators cannot be opened; undefined if it was closed. */
async function healthWhileFailing(adminPort: number): Promise<number | undefined> {
  const health = Promise.withResolvers<number | undefined>();
  const starting = start(adminPort, (_, origin) => {
    const status = fetch(`${origin}/healthz`).then(
      (response) => response.status,
      () => undefined,
    );
    health.resolve(status);
  });
  await expect(starting).rejects.toThrow("cannot listen for operators");
  return health.promise;
}

test("/healthz responds 503 if the listener for operators cannot be opened, and the start does not wait for it", async () => {
  const taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  let status: number | undefined;
  // On a busy machine the server may have ended before it reads the request.
  for (let attempt = 0; attempt < 10 && status === undefined; attempt++)
    status = await healthWhileFailing(taken.port ?? 0);
  expect(status).toBe(503);
  await taken.stop(true);
});
