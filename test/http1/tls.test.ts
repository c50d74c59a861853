import { afterEach, describe, expect, jest, test } from "bun:test";
import { connect } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { HttpServer, type HttpServerOptions } from "../../src/http1/index.ts";
import { RawConnection } from "../../trials/harness/http-connection.ts";
import { certificateOf } from "./certificate.ts";
import { iterateUntil, respond } from "./test-connection.ts";

const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

const [first, second] = [certificateOf("first"), certificateOf("second")];

const closing: (() => unknown)[] = [];
afterEach(async () => {
  jest.useRealTimers();
  for (const close of closing.splice(0).toReversed()) await close();
});

function listen(handle: () => ReturnType<typeof respond>, options: Partial<HttpServerOptions> = {}) {
  const server = new HttpServer({
    host: "127.0.0.1",
    port: 0,
    createHandler: () => ({
      handle,
      handleError: () => respond("failed", 500),
      protocolError: (status) => respond("", status),
    }),
    tls: first,
    onError: (error) => errors.push(error),
    closeTimeoutMs: 100,
    ...options,
  });
  closing.push(() => server.close(0));
  return server;
}

const errors: unknown[] = [];
afterEach(() => expect(errors).toEqual([]));

function connectTo({ port }: HttpServer): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const options = { port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2", "http/1.1"] };
    const socket = connectTls(options, () => resolve(socket));
    socket.on("error", reject);
    closing.push(() => socket.destroy());
  });
}

/** Everything that the server sends until it closes the connection. */
function received(socket: TLSSocket): Promise<string> {
  let text = "";
  socket.on("data", (bytes) => void (text += bytes.toString("latin1")));
  return new Promise((resolve) => socket.on("close", () => resolve(text)).on("end", () => resolve(text)));
}

const commonName = (socket: TLSSocket) => socket.getPeerCertificate().subject.CN;

describe("a server with TLS", () => {
  test("sends Strict-Transport-Security with protocol errors too, and not without TLS", async () => {
    const secure = await connectTo(listen(() => respond("")));
    const text = received(secure);
    secure.write("GET\r\n\r\n");
    expect(await text).toMatch(/^HTTP\/1\.1 400 [^]*Strict-Transport-Security: max-age=31536000\r\n/);
    const server = listen(() => respond(""), { tls: undefined });
    server.setTlsCertificate(second);
    expect(server.tlsCertificate).toBeUndefined();
    const { headers } = await fetch(`http://127.0.0.1:${server.port}/`);
    expect(headers.has("strict-transport-security")).toBe(false);
  });

  test("chooses http/1.1 by ALPN, and responds to pipelined requests of a client that then closes its sending side", async () => {
    const socket = await connectTo(listen(() => respond("ok")));
    expect(socket.alpnProtocol).toBe("http/1.1");
    const text = received(socket);
    socket.end(GET.repeat(50));
    expect((await text).match(/HTTP\/1\.1 200/g)?.length).toBe(50);
  });

  test("sends every byte of a large response to a client that reads late", async () => {
    const body = "猫é".repeat(1_000_000);
    const server = listen(() => respond(body));
    const socket = await connectTo(server);
    socket.write(GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
    socket.pause();
    await iterateUntil(() => server.statistics.bytesSent > 0);
    const text = received(socket);
    socket.resume();
    const bytes = Buffer.from(await text, "latin1").toString();
    expect(bytes.slice(bytes.indexOf("\r\n\r\n") + 4) === body).toBe(true);
  });

  test("gives new connections the certificate that was set, and leaves open ones alone", async () => {
    const server = listen(() => respond("ok"));
    const before = await connectTo(server);
    server.setTlsCertificate(second);
    const after = await connectTo(server);
    expect([commonName(before), commonName(after)]).toEqual(["first", "second"]);
    expect(() => server.setTlsCertificate({ ...second, cert: "none" })).toThrow();
    expect(server.tlsCertificate).toBe(second);
    before.write(GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
    expect(await received(before)).toEndWith("ok");
  });

  test.each([
    ["plain HTTP", GET],
    ["bytes that are no handshake", "\x16\x03\x01\x00\x05garbage garbage"],
  ])("closes a connection that sends %s, and goes on", async (_, bytes) => {
    const server = listen(() => respond("ok"), { maxConnectionsPerPeer: 1 });
    const client = new RawConnection(server.port);
    await client.write(bytes);
    expect(await client.rest()).not.toContain("HTTP/1.1");
    await iterateUntil(() => server.statistics.connections === 0);
    const secure = await connectTo(server);
    secure.write(GET);
    expect(await new Promise((resolve) => secure.once("data", (data) => resolve(String(data))))).toEndWith(
      "ok",
    );
  });

  test("closes a connection whose handshake is not complete after 10 seconds", async () => {
    jest.useFakeTimers();
    const server = listen(() => respond("ok"), { maxConnectionsPerPeer: 1 });
    const socket = connect(server.port, "127.0.0.1").on("error", () => {});
    const closed = new Promise((resolve) => socket.on("close", resolve));
    socket.write(Buffer.from([0x16, 0x03, 0x01, 0x02]));
    socket.resume();
    await iterateUntil(() => server.statistics.connections === 1);
    jest.advanceTimersByTime(11_000);
    await closed;
    await iterateUntil(() => server.statistics.connections === 0);
    expect(commonName(await connectTo(server))).toBe("first");
  });

  test("closes connections beyond 100 of one address in a second, however many it may have open", async () => {
    jest.useFakeTimers();
    const limits: string[] = [];
    const server = listen(() => respond("ok"), { onLimit: ({ limit }) => limits.push(limit) });
    const clients = Array.from({ length: 101 }, () => new RawConnection(server.port));
    closing.push(() => clients.forEach(({ socket }) => socket.destroy()));
    await iterateUntil(() => clients.some(({ isClosed }) => isClosed));
    expect(clients.filter(({ isClosed }) => isClosed)).toHaveLength(1);
    expect(limits).toEqual(["handshakes"]);
    jest.advanceTimersByTime(1_000);
    expect(commonName(await connectTo(server))).toBe("first");
  });

  test("shuts down when the last connection is closed", async () => {
    jest.useFakeTimers();
    const server = listen(() => respond("ok"));
    const socket = await connectTo(server);
    socket.write(GET);
    await new Promise((resolve) => socket.once("data", resolve));
    const closed = server.close(0);
    jest.advanceTimersByTime(0);
    await closed;
  });
});
