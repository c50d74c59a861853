import { expect, test } from "bun:test";
import { executable, SS } from "../../../trials/harness/programs.ts";
import { startEchoServer } from "../../http1/echo-server.ts";

test("the listen backlog is the system's maximum", async () => {
  const server = startEchoServer();
  const [systemMaximum, sockets] = await Promise.all([
    Bun.file("/proc/sys/net/core/somaxconn").text(),
    Bun.$`${executable(SS)} -Hltn sport = :${server.port}`.text(),
  ]);
  expect(sockets.split(/\s+/)[2]).toBe(systemMaximum.trim());
  await server.close(0);
});
