import { expect, test } from "bun:test";
import type { ApiKey } from "../../src/domain/api-keys.ts";
import { logAudit, logConnectionLimit, logKeyChanges } from "../../src/observe/event-reports.ts";
import { createLog } from "../../src/observe/log.ts";

const NOW = Date.parse("2026-11-15T12:00:00Z");

const keyWith = (changed: Partial<ApiKey>): ApiKey => ({
  id: 7,
  name: "Ada's app",
  plan: "pro",
  labels: [],
  access: "write",
  createdAt: 0,
  ...changed,
});

function logged(changed: readonly ApiKey[]): unknown[] {
  const lines: string[] = [];
  const log = createLog({ format: "json", write: (line) => lines.push(line) });
  logKeyChanges(log, changed, NOW);
  expect(lines.join()).not.toContain("Ada");
  return lines.map((line) => JSON.parse(line));
}

test("each changed key is an event with its plan and its state", () => {
  const expiresAt = NOW + 1_000;
  const changes = [{}, { id: 8, revokedAt: NOW }, { id: 9, expiresAt: NOW }, { id: 10, expiresAt }];
  expect(logged(changes.map(keyWith))).toMatchObject([
    { event: "key.changed", keyId: 7, plan: "pro", state: "active", expiresAt: null },
    { event: "key.changed", keyId: 8, plan: "pro", state: "revoked", expiresAt: null },
    { event: "key.changed", keyId: 9, plan: "pro", state: "expired", expiresAt: "2026-11-15T12:00:00.000Z" },
    { event: "key.changed", keyId: 10, plan: "pro", state: "active", expiresAt: "2026-11-15T12:00:01.000Z" },
  ]);
});

test("of thousands of changes at once, 100 have an event of their own", () => {
  const events = logged(Array.from({ length: 2_500 }, (_, id) => keyWith({ id })));
  expect(events).toHaveLength(101);
  expect(events.at(-1)).toMatchObject({ event: "key.many-changed", others: 2_400 });
});

test("each audit entry is an event with what operators see of it", () => {
  const lines: string[] = [];
  const report = logAudit(createLog({ format: "json", write: (line) => lines.push(line) }));
  report({ id: 7n, at: NOW, actor: { kind: "server" }, action: "key.banned", after: { name: "shop" } });
  const { time: _, message: _message, ...rest } = JSON.parse(lines.join(""));
  expect(rest).toEqual({
    level: "info",
    event: "audit.key.banned",
    id: "7",
    at: "2026-11-15T12:00:00.000Z",
    actor: { operator: null, kind: "server", name: null },
    target: null,
    before: null,
    after: { name: "shop" },
  });
});

test("each limit of connections has events of its own, when it is reached and when it is over", () => {
  const lines: string[] = [];
  const log = createLog({
    format: "json",
    write(line) {
      const { time: _, message: _message, ...rest } = JSON.parse(line);
      lines.push(Object.values(rest).join(" "));
    },
  });
  const counts = { peer: "192.0.2.1", evicted: 3, rejected: 7 };
  for (const limit of ["all", "peer", "handshakes"] as const)
    for (const isOver of [false, true]) logConnectionLimit(log, { limit, isOver, ...counts });
  expect(lines).toEqual([
    "warn connections.limit-reached",
    "info connections.limit-ended 3 7",
    "warn connections.address-limit-reached 192.0.2.1",
    "info connections.address-limit-ended 7",
    "warn connections.handshake-limit-reached 192.0.2.1",
    "info connections.handshake-limit-ended 7",
  ]);
});
