import { dlopen, ptr } from "bun:ffi";
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import type { HttpServer } from "../../src/http1/index.ts";
import { stopHandshakes } from "../../src/http1/listen-socket.ts";
import { startEchoServer } from "./echo-server.ts";
import { iterateUntil } from "./test-connection.ts";

const [SOL_SOCKET, SO_RCVBUF, SO_ATTACH_FILTER] = [1, 8, 26];
const [IPPROTO_TCP, TCP_INFO, MAX_BACKLOG_AT] = [6, 11, 28];

/** The C library that this process has loaded: glibc or musl. */
const [, libc = ""] =
  /(\/\S*\/(?:libc|ld-musl)[-.]\S*)$/m.exec(readFileSync("/proc/self/maps", "utf8")) ?? [];
const { symbols } = dlopen(libc, {
  getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
  setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
});

let server: HttpServer;
let listener: object;
beforeEach(() => {
  using listen = spyOn(Bun, "listen");
  server = startEchoServer();
  listener = Object(listen.mock.results[0]?.value);
});
afterEach(() => server.close(0));

/** What the kernel knows of the listening socket. `length` is in the unit of the option. */
function optionOf(level: number, option: number, length: number): DataView {
  const bytes = new Uint8Array(128);
  const fd = Number(Reflect.get(listener, "fd"));
  expect(symbols.getsockopt(fd, level, option, bytes, new Uint32Array([length]))).toBe(0);
  return new DataView(bytes.buffer);
}

test("the backlog is the system's maximum, and the receive buffer has 64 KiB", async () => {
  const systemMaximum = Number(await Bun.file("/proc/sys/net/core/somaxconn").text());
  const backlog = optionOf(IPPROTO_TCP, TCP_INFO, 104).getUint32(MAX_BACKLOG_AT, true);
  expect(backlog).toBe(Math.min(systemMaximum, 65_535));
  expect(optionOf(SOL_SOCKET, SO_RCVBUF, 4).getUint32(0, true)).toBe(65_536);
});

/** Whether this user may filter packets, which some systems allow to root alone. Tried with one that takes them all. */
function mayFilter(socket: object): boolean {
  const program = new BigUint64Array([1n, 0n, 0xffff_ffff_0000_0006n]);
  program[1] = BigInt(ptr(program) + 16);
  const fd = Number(Reflect.get(socket, "fd"));
  return symbols.setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, program, 16) === 0;
}

test("no handshake begins after the last ones, and the packets of those that have begun arrive", async () => {
  const open = (to: number, onConnect = () => {}) =>
    connect(to, "127.0.0.1", onConnect).on("error", () => {});
  const early = open(server.port);
  await iterateUntil(() => server.statistics.accepted === 1);
  stopHandshakes(listener);
  const late = open(server.port);
  await using other = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  // The system connects clients in their order.
  await new Promise<void>((resolve) => void open(other.port, resolve));
  const isStopped = mayFilter(other);
  expect([early.connecting, late.connecting]).toEqual([false, isStopped]);
  await iterateUntil(() => server.statistics.accepted === (isStopped ? 1 : 2));
  early.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const [response] = await once(early, "data");
  expect(String(response)).toStartWith("HTTP/1.1 200 ");
  for (const socket of [early, late]) socket.destroy();
});
