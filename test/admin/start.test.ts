import { afterEach, expect, spyOn, test } from "bun:test";
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

/** Starts a server, and calls `onListening` with the origin of each listener as soon as it is open. */
async function start(port: number, onListening: (listener: "url" | "adminUrl", origin: string) => void) {
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
  const config = { ...configIn(temporaryDirectory("start")), admin: { ...ADMIN_CONFIG, port } };
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
