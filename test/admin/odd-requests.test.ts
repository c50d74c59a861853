import { expect, test } from "bun:test";
import { sendRaw } from "../http/raw.ts";
import { useAdminService } from "./admin-service.ts";

const service = await useAdminService();
await service.ok("POST /api/keys", { body: { name: "confidential", plan: "free" } });

const TARGETS = [
  "/api/keys",
  "/api/keys/",
  "/api//keys",
  "//api/keys",
  "/api/./keys",
  "/livez/../api/keys",
  "/assets/../api/keys",
  "/assets/%2e%2e/api/keys",
  "/%61pi/keys",
  "/api%2fkeys",
  "/API/keys",
  "/api/keys?token=",
  "/api/keys;/livez",
  "/api/keys#/livez",
  "/api/session/../keys",
  "/api/openapi.json",
  "/api",
  "/metrics",
  "/metrics/",
  "/readyz/../metrics",
  "http://127.0.0.1/api/keys",
  "http://evil.example/api/keys",
  "*",
];
const METHODS = "GET HEAD OPTIONS POST PUT PATCH DELETE TRACE CONNECT get QUERY".split(" ");
const HEADERS = [
  "X-HTTP-Method-Override: GET\r\nX-Original-URL: /livez\r\nX-Rewrite-URL: /livez\r\n",
  "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: localhost\r\nForwarded: for=127.0.0.1;host=localhost\r\n",
  "Authorization: Bearer\r\n",
  "Authorization: Bearer undefined\r\n",
  "Authorization: Bearer null\r\nCookie: petstore-admin-0=1.a.b\r\n",
  "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n",
];

const FORMS = [
  ...METHODS.map((method) => ({ method, header: "" })),
  ...HEADERS.map((header) => ({ method: "GET", header })),
];

test("no odd form of a request reaches data without the token", async () => {
  for (const target of TARGETS) {
    for (const { method, header } of FORMS) {
      const head = `${method} ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n${header}`;
      const response = await sendRaw(service.adminUrl, `${head}\r\n`);
      const [, status = ""] = /^HTTP\/1.1 (\d+)/.exec(response) ?? [];
      const request = `${method} ${target} ${header}`;
      expect([request, status]).toEqual([request, expect.stringMatching(/^(?:204|4\d\d|50[15])$/)]);
      expect([request, /confidential|petstore_http/.test(response)]).toEqual([request, false]);
      // 204 is for OPTIONS of what is open to all.
      if (status === "204") expect(request).toMatch(/^OPTIONS \/api\/session|^DELETE/);
    }
  }
}, 60_000);
