import { afterEach, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { createLog, silentLog } from "../../src/log.ts";
import type { Request } from "../../src/http1/request.ts";
import { HttpServer, type Listening } from "../../src/http1/server.ts";
import type { Response } from "../../src/http1/response.ts";
import { reply } from "./wire.ts";

const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

let open: HttpServer[] = [];
afterEach(async () => {
  const all = open;
  open = [];
  await Promise.all(all.map((listener) => listener.close(0)));
});

function listen(
  handle: (request: Request) => Response | Promise<Response>,
  options: Partial<Listening> = {},
): HttpServer {
  const site = { handle, handleError: () => reply("fault", 500) };
  const listener = new HttpServer({ host: "127.0.0.1", port: 0, log: silentLog, site, ...options });
  open.push(listener);
  return listener;
}

interface Client {
  readonly socket: Socket;
  /** Resolves when the other side has ended the connection, with everything that it sent. */
  readonly whole: Promise<string>;
  until(isEnough: (text: string) => boolean): Promise<string>;
}

function dial({ port }: HttpServer): Client {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  let text = "";
  let wake = () => {};
  socket.on("data", (bytes) => ((text += bytes.toString("latin1")), wake()));
  const whole = new Promise<string>((resolve, reject) => {
    socket.on("end", () => (socket.end(), resolve(text)));
    socket.on("error", reject);
  });
  whole.catch(() => {});
  const until = async (isEnough: (text: string) => boolean) => {
    while (!isEnough(text)) await new Promise<void>((resolve) => (wake = resolve));
    return text;
  };
  return { socket, whole, until };
}

const count = (text: string) => text.match(/HTTP\/1\.1 200/g)?.length ?? 0;

describe("a listener", () => {
  test("answers thousands of requests that come in one piece, and others in between", async () => {
    const listener = listen(({ path }) => reply(path));
    const [many, one] = [dial(listener), dial(listener)];
    many.socket.write(GET.repeat(5_000));
    one.socket.write(GET);
    const answersBefore = one
      .until((text) => count(text) === 1)
      .then(() => many.until(() => true).then(count));
    expect(await answersBefore).toBeLessThan(5_000);
    expect(count(await many.until((text) => count(text) === 5_000))).toBe(5_000);
    many.socket.destroy();
    one.socket.destroy();
  });

  test("gives a client that reads slowly all of a large answer, byte for byte", async () => {
    const body = "猫é".repeat(2_000_000);
    const { socket, whole } = dial(listen(() => reply(body)));
    socket.pause();
    socket.write(GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
    await Bun.sleep(50);
    socket.resume();
    const text = await whole;
    expect(Buffer.from(text.slice(text.indexOf("\r\n\r\n") + 4), "latin1").toString() === body).toBe(true);
  });

  test("answers a client that has shut its own side already", async () => {
    const { socket, whole } = dial(listen(async () => (await Bun.sleep(10), reply("late"))));
    socket.end(GET);
    expect(await whole).toEndWith("late");
  });

  test("lets a client that is refused in the middle of a large body read why", async () => {
    const { socket, whole } = dial(listen(() => reply("no", 413)));
    socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n");
    socket.write("x".repeat(5_000_000));
    expect(await whole).toEndWith("no");
  });

  test("serves something else from the next request on", async () => {
    const listener = listen(() => reply("before"));
    const { socket, until } = dial(listener);
    socket.write(GET);
    await until((text) => text.endsWith("before"));
    listener.serve({ handle: () => reply("after"), handleError: () => reply("", 500) });
    socket.write(GET);
    expect(await until((text) => text.endsWith("after"))).toContain("before");
    socket.destroy();
  });

  test("knows the address at the other end", async () => {
    const { socket, until } = dial(listen(({ remoteAddress }) => reply(remoteAddress)));
    socket.write(GET);
    expect(await until((text) => text.includes("\r\n\r\n"))).toEndWith("127.0.0.1");
    socket.destroy();
  });
});

test("every second connections that are too slow are looked for, and answers are dated anew", async () => {
  const listener = listen(() => reply("dated"), { secondMs: 2 });
  const before = listener.date;
  const { socket, whole } = dial(listener);
  socket.write("GET / HT");
  expect(await whole).toStartWith("HTTP/1.1 408 ");
  while (listener.date === before) await Bun.sleep(20);
});

test("a fault in a connection ends that connection, and is logged", async () => {
  const lines: string[] = [];
  const log = createLog((line) => void lines.push(line));
  const listener = listen(() => ({ ...reply(""), body: 5 as never }), { log });
  const { socket, whole } = dial(listener);
  socket.write(GET);
  await whole.catch(() => {});
  expect(lines[0]).toContain("a connection failed");
});

describe("closing", () => {
  test("cuts off what does not end in time, also when it begins later", async () => {
    const never = () => new Promise<Response>(() => {});
    for (const delayMs of [0, 20]) {
      const listener = listen(never, { drainMs: 40 });
      const { socket, whole } = dial(listener);
      socket.write(GET);
      await Bun.sleep(5);
      const closing = performance.now();
      await listener.close(delayMs);
      expect(performance.now() - closing).toBeWithin(35, 1_000);
      expect((await whole.catch((error: NodeJS.ErrnoException) => error.code)) ?? "").toBe("ECONNRESET");
    }
    open = [];
  });

  test("leaves idle connections alone until the delay has passed", async () => {
    const listener = listen(() => reply("still here"), { secondMs: 2 });
    const { socket, whole } = dial(listener);
    await Bun.sleep(10);
    const closed = listener.close(60);
    await Bun.sleep(30);
    socket.write(GET);
    expect(await whole).toEndWith("still here");
    await closed;
    open = [];
  });

  test("ends idle connections at once, and waits for the answer that is under way", async () => {
    const started = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    const listener = listen(async () => {
      started.resolve();
      await finish.promise;
      return reply("finished");
    });
    const [idle, busy] = [dial(listener), dial(listener)];
    busy.socket.write(GET);
    await started.promise;
    const closed = listener.close(0);
    expect(await idle.whole).toBe("");
    finish.resolve();
    const answer = await busy.whole;
    expect(answer).toContain("Connection: close\r\n");
    expect(answer).toEndWith("finished");
    await closed;
    open = [];
  });

  test("ends connections that become idle meanwhile, and does not wait for those that say nothing more", async () => {
    const listener = listen(() => reply("x".repeat(8_000_000)));
    const { socket, whole, until } = dial(listener);
    socket.write(GET);
    await until((text) => text.length > 0);
    socket.pause();
    const closing = performance.now();
    const closed = listener.close(0);
    socket.resume();
    expect((await whole).length).toBeGreaterThan(8_000_000);
    await closed;
    expect(performance.now() - closing).toBeLessThan(4_000);
    open = [];
  });

  test("answers what comes before the delay has passed, and says that the connection ends", async () => {
    const listener = listen(() => reply("still here"));
    const { socket, until, whole } = dial(listener);
    socket.write(GET);
    await until((text) => text.endsWith("still here"));
    const closed = listener.close(50);
    socket.write(GET);
    expect(await whole).toMatch(/Connection: close\r\n[^]*still here$/);
    await closed;
    open = [];
  });
});
