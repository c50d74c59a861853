import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Service, startService } from "../service.ts";
import { hasWholeResponse, sendRaw } from "./raw.ts";

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

const request = (line: string, headers: string[] = [], body = "") =>
  [line, "Host: x", `Authorization: Bearer ${service.key}`, ...headers, "", body].join("\r\n");

const statusOf = (text: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
const send = (line: string, headers?: string[], body?: string) =>
  sendRaw(service.url, request(line, headers, body));

const isHealthy = async () => expect((await service.call({ path: "/pets?limit=1" })).status).toBe(200);

test("an absolute request target is routed by its path, and links have the public URL", async () => {
  for (let i = 0; i < 2; i++)
    await service.call({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: 1 } });
  const response = await send("GET http://evil.example/v1/pets?limit=1 HTTP/1.1");
  expect(statusOf(response)).toBe(200);
  expect(response).toContain(`<${service.url}/pets?limit=1&cursor=`);
});

for (const path of ["/v1/./pets", "/v1/x/../pets", "/v1/%2e%2e/v1/pets"]) {
  test(`dot segments in a path are not resolved: ${path}`, async () => {
    expect(statusOf(await send(`GET ${path} HTTP/1.1`))).toBe(404);
  });
}

for (const method of ["TRACE", "PROPFIND", "PURGE", "PUT", "DELETE"]) {
  test(`${method} /v1/pets 405`, async () => {
    expect(statusOf(await send(`${method} /v1/pets HTTP/1.1`))).toBe(405);
  });
}

for (const [what, text] of [
  ["no request at all", "asdf\r\n\r\n"],
  ["a TLS greeting", "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n"],
  ["a missing Host", "GET /v1/pets HTTP/1.1\r\n\r\n"],
  ["two hosts", "GET /v1/pets HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n"],
  ["two lengths", "POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"],
  [
    "a length and chunks",
    "POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
  ],
  ["a negative length", "POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"],
  ["NUL in a header", "GET /v1/pets HTTP/1.1\r\nHost: x\r\nA: a\0b\r\n\r\n"],
] as const) {
  test(`malformed HTTP gets 400: ${what}`, async () => {
    expect(statusOf(await sendRaw(service.url, text))).toBe(400);
    await isHealthy();
  });
}

test("headers of 20 kB get 431", async () => {
  expect(statusOf(await send("GET /v1/pets HTTP/1.1", [`A: ${"a".repeat(20_000)}`]))).toBe(431);
  await isHealthy();
});

test("createPet 413: a huge Content-Length gets the error at once, and the connection closes", async () => {
  const response = await sendRaw(
    service.url,
    request("POST /v1/pets HTTP/1.1", ["Content-Type: application/json", "Content-Length: 99999999999"], "{"),
    (text) => hasWholeResponse(text),
  );
  expect(statusOf(response)).toBe(413);
  expect(response).toContain('"code":"body_too_large"');
  expect(response).toMatch(/connection: close/i);
  expect(response).toMatch(/x-ratelimit-remaining: \d+/i);
});

test("createPet 201: a chunked body", async () => {
  const json = '{"name":"Chunky","categoryId":1}';
  const body = `${json.length.toString(16)}\r\n${json}\r\n0\r\n\r\n`;
  const response = await send(
    "POST /v1/pets HTTP/1.1",
    ["Content-Type: application/json", "Transfer-Encoding: chunked"],
    body,
  );
  expect(statusOf(response)).toBe(201);
});

test("createPet 201: Expect: 100-continue", async () => {
  const json = '{"name":"Polite","categoryId":1}';
  const headers = [
    "Content-Type: application/json",
    `Content-Length: ${json.length}`,
    "Expect: 100-continue",
  ];
  const response = await sendRaw(service.url, request("POST /v1/pets HTTP/1.1", headers, json), (text) =>
    hasWholeResponse(text.replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, "")),
  );
  expect(response).toContain("HTTP/1.1 201 Created");
});

test("a client that disconnects in the middle of a body adds no pet", async () => {
  const count = async () => ((await service.call({ path: "/pets?limit=100" })).json as unknown[]).length;
  const before = await count();
  const headers = ["Content-Type: application/json", "Content-Length: 100"];
  const { hostname, port } = new URL(service.url);
  const socket = await Bun.connect({ hostname, port: Number(port), socket: { data() {} } });
  socket.write(request("POST /v1/pets HTTP/1.1", headers, '{"name":"Gone","categoryId":1'));
  socket.flush();
  socket.terminate();
  await isHealthy();
  expect(await count()).toBe(before);
});

test("pipelined requests get their responses in order", async () => {
  const response = await sendRaw(
    service.url,
    request("GET /v1/pets?limit=1 HTTP/1.1") + request("GET /v1/nothing HTTP/1.1"),
    (text) => text.includes("not_found"),
  );
  expect(response.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 404"]);
});

test("createPet 201: a chunked body with a trailer", async () => {
  const json = '{"name":"Train","categoryId":1}';
  const body = `${json.length.toString(16)}\r\n${json}\r\n0\r\nX: y\r\n\r\n`;
  const headers = ["Content-Type: application/json", "Transfer-Encoding: chunked"];
  expect(statusOf(await send("POST /v1/pets HTTP/1.1", headers, body))).toBe(201);
});

test("requests after a write on one connection get their responses after it, and malformed ones get 400", async () => {
  const json = '{"name":"First","categoryId":1}';
  const create = request(
    "POST /v1/pets HTTP/1.1",
    ["Content-Type: application/json", `Content-Length: ${json.length}`],
    json,
  );
  const text = `${create}${create}${request("GET /v1/pets?limit=1 HTTP/1.1")}\x00broken`;
  const response = await sendRaw(service.url, text, (soFar) => soFar.includes("HTTP/1.1 400"));
  expect(response.match(/HTTP\/1\.1 \d+/g)).toEqual([
    "HTTP/1.1 201",
    "HTTP/1.1 201",
    "HTTP/1.1 200",
    "HTTP/1.1 400",
  ]);
});

test("createPet 413: the connection stays open after a body that is a little too large", async () => {
  const body = "x".repeat(70_000);
  const headers = ["Content-Type: application/json", `Content-Length: ${body.length}`];
  const text = request("POST /v1/pets HTTP/1.1", headers, body) + request("GET /v1/pets?limit=1 HTTP/1.1");
  const response = await sendRaw(service.url, text, (soFar) => soFar.includes("HTTP/1.1 200"));
  expect(response.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 413", "HTTP/1.1 200"]);
});

test("only the identifier of a path may be percent-encoded", async () => {
  const location = (
    await service.call({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: 1 } })
  ).headers.get("location");
  const id = location?.split("/").at(-1) ?? "";
  const encoded = [...id].map((digit) => `%${digit.charCodeAt(0).toString(16)}`).join("");
  expect(statusOf(await send(`GET /v1/pets/${encoded} HTTP/1.1`))).toBe(200);
  for (const path of [`/v1/%70ets/${id}`, `/v1/pets/${id}/`, "/v1/pets/%zz", "/v1/pets/%2f", "/v1//pets"]) {
    expect(statusOf(await send(`GET ${path} HTTP/1.1`))).toBe(404);
  }
});
