import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import { type Service, startService } from "../service.ts";
import { sendRaw } from "./raw.ts";

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

const newPet = async () => {
  const { json } = await service.call({
    method: "POST",
    path: "/pets",
    body: { name: "Rex", categoryId: 1 },
  });
  return (json as { id: number }).id;
};
/** `fetch` would change some of the paths. */
const request = (method: string, path: string, ...headers: string[]) =>
  [
    `${method} /v1${path} HTTP/1.1`,
    "Host: x",
    `Authorization: Bearer ${service.key}`,
    ...headers,
    "",
    "",
  ].join("\r\n");

test.each([
  "/nothing",
  "",
  "/",
  "/pets/",
  "/pets/1/",
  "/pets/1/2",
  "//pets",
  "/Pets",
  "/store",
  "/store/orders/1/x",
  "/%70ets",
  "/pets;a=b",
  "/./pets",
  "/x/../pets",
  "/%2e%2e/v1/pets",
])("any 404 not_found: the path %p", async (path) => {
  const response = await sendRaw(service.url, request("GET", path));
  expect(response).toStartWith("HTTP/1.1 404 ");
  expect(response).toContain('{"code":"not_found",');
});

test("the identifier of a path may be percent-encoded", async () => {
  const id = String(await newPet());
  const encoded = [...id].map((digit) => `%${digit.charCodeAt(0).toString(16)}`).join("");
  expect(await sendRaw(service.url, request("GET", `/pets/${encoded}`))).toStartWith("HTTP/1.1 200 ");
});

test.each([
  ["DELETE", "/pets", "GET, HEAD, POST, OPTIONS"],
  ["TRACE", "/pets", "GET, HEAD, POST, OPTIONS"],
  ["PUT", "/pets/1", "GET, HEAD, OPTIONS"],
  ["PUT", "/store/orders/1", "GET, HEAD, PATCH, OPTIONS"],
  ["PATCH", "/store/orders", "GET, HEAD, POST, OPTIONS"],
])("%s %s 405, and OPTIONS 204: Allow lists the methods of the path", async (method, path, allow) => {
  const response = await sendRaw(service.url, request(method, path));
  expect(response).toStartWith("HTTP/1.1 405 ");
  expect(response).toContain(`\r\nAllow: ${allow}\r\n`);
  const options = await service.call({ method: "OPTIONS", path });
  expect([options.status, options.headers.get("allow")]).toEqual([204, allow]);
});

test("a client that disconnects in the middle of a body adds no pet", async () => {
  const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
  const head = request("POST", "/pets", "Content-Type: application/json", "Content-Length: 100");
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.on("data", () => {});
  socket.end(`${head}{"name":"Gone","categoryId":1`);
  await closed;
  const { text } = await service.call({ path: "/pets?limit=100" });
  expect(text).not.toContain("Gone");
});
