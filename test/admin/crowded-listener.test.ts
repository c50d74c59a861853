import { afterEach, expect, test } from "bun:test";
import { HttpConnection, RawConnection, sendOnce } from "../../trials/harness/http-connection.ts";
import { startRequest } from "../http/raw.ts";
import { until } from "../timing.ts";
import { TOKEN, useAdminService } from "./admin-service.ts";

const service = await useAdminService({ hostnames: ["petstore.test"] });
const port = Number(new URL(service.adminUrl).port);
function statistics() {
  const { admin } = service.app;
  if (admin === undefined) throw new Error("there is no listener for operators");
  return admin.server.statistics;
}

const OPERATOR = "127.0.0.1";
const TOKEN_HEADER = ["Authorization", `Bearer ${TOKEN}`] as const;
const asOperator = { path: "/api/keys", headers: [TOKEN_HEADER] };
const unsent = "Host: localhost\r\nContent-Length: 300\r\n\r\n{";

const open: RawConnection[] = [];
afterEach(async () => {
  for (const { socket } of open.splice(0)) socket.destroy();
  await until(() => statistics().connections === 0, 5_000);
});

/** Connections from 130 addresses, two of each, on which a part of a request was sent. */
async function crowd(text: string): Promise<void> {
  const before = statistics();
  for (let n = 0; n < 260; n++) {
    const connection = new RawConnection(port, `127.0.1.${(n % 130) + 1}`);
    open.push(connection);
    void connection.write(text);
  }
  await until(() => {
    const { accepted, rejected, bytesReceived } = statistics();
    const opened = accepted + rejected - before.accepted - before.rejected;
    return opened === 260 && bytesReceived - before.bytesReceived >= 190 * text.length;
  }, 5_000);
  expect(statistics().connections).toBeGreaterThan(190);
}

test.each([
  ["half of a head", "POST /api/session HTTP/1.1\r\nHost: loc"],
  ["half of a body to sign in with", `POST /api/session HTTP/1.1\r\n${unsent}`],
  ["half of a body, and no token", `POST /api/keys HTTP/1.1\r\n${unsent}`],
  [
    "half of a body, and a wrong token",
    `POST /api/keys HTTP/1.1\r\nAuthorization: Bearer wrong\r\n${unsent}`,
  ],
  ["half of a body for /livez", `GET /livez HTTP/1.1\r\n${unsent}`],
])("260 connections from 130 addresses with %s keep neither operators nor probes out", async (_, text) => {
  await crowd(text);
  expect((await sendOnce(port, { path: "/livez" }, OPERATOR)).status).toBe(200);
  const operators = await Promise.all(Array.from({ length: 6 }, () => sendOnce(port, asOperator, OPERATOR)));
  expect(operators.map(({ status }) => status)).toEqual(Array(6).fill(200));
});

test("connections of operators stay while 260 others come: idle ones, and those whose body is on its way", async () => {
  const idle = await HttpConnection.open(port, OPERATOR);
  expect((await idle.send(asOperator)).status).toBe(200);
  const body = { name: "late", role: "viewer" };
  const headers = Object.fromEntries([TOKEN_HEADER]);
  const finish = await startRequest(service.adminUrl, { path: "/api/operators", headers, body });
  await crowd(`POST /api/session HTTP/1.1\r\n${unsent}`);
  expect((await finish()).status).toBe(201);
  expect((await idle.send(asOperator)).status).toBe(200);
  idle.close();
});

test("408: a body without a valid token has 5 seconds, and the message says so", async () => {
  const response = service.app.admin?.server.handler.protocolError(408);
  expect(JSON.parse(String(response?.body))).toEqual({
    code: "request_timeout",
    message:
      "The request did not arrive within 30 seconds, or its body without a valid token within 5 seconds.",
    status: 408,
  });
});
