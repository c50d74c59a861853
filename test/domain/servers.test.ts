import { expect, test } from "bun:test";
import {
  differingSettings,
  NO_ACTIVITY,
  reportedSetting,
  ServerReport,
  type ServerState,
  ServerVersion,
} from "../../src/domain/servers.ts";
import { Invalid } from "../../src/api/schema.ts";
import { reportedSettings } from "../../src/config/reported-settings.ts";
import { shownWith } from "../config/parsing.ts";

const server = (id: string, more: Partial<ServerState> = {}): ServerState => ({
  ...NO_ACTIVITY,
  id,
  name: id,
  version: "1.2.0",
  startedAt: 0,
  seenAt: 0,
  ...more,
});
const withUrl = (id: string, value: string) => server(id, { settings: [{ name: "public-url", value }] });
const differing = (...servers: ServerState[]) => Object.fromEntries(differingSettings(servers));

test("a server differs in what is another value than on most servers", () => {
  expect(differing(server("a"), server("b"))).toEqual({});
  expect(differing(server("a"), server("b"), server("c", { version: "1.1.0" }))).toEqual({
    c: [{ name: "version", value: "1.1.0" }],
  });
  // A server of an earlier release does not report its settings.
  expect(differing(withUrl("a", "x"), withUrl("b", "x"), server("c"))).toEqual({});
});

test("lists with the same items in another order are the same value", () => {
  const reported = (...proxies: string[]) => {
    const flags = { "trust-proxy": proxies, "webhook-events": ["operator.*,key.banned"] };
    return reportedSettings(shownWith(flags), "").settings;
  };
  const settings = reported("10.0.0.3,10.0.0.2");
  expect(settings).toContainEqual({ name: "trust-proxy", value: "10.0.0.2/32,10.0.0.3/32" });
  expect(settings).toContainEqual({ name: "webhook-events", value: "key.banned,operator.*" });
  expect(reported("10.0.0.2", "10.0.0.3", "10.0.0.2")).toEqual(settings);
});

test("if no value is that of most servers, all of them differ", () => {
  expect(differing(withUrl("a", "x"), withUrl("b", "y"))).toEqual({
    a: [{ name: "public-url", value: "x" }],
    b: [{ name: "public-url", value: "y" }],
  });
});

test("a long value is reported as its hash, so that every server can read the report", () => {
  expect(reportedSetting("trust-proxy", "x".repeat(300)).value).toHaveLength(300);
  const [one, other] = ["x", "y"].map((text) => reportedSetting("trust-proxy", text.repeat(301)).value);
  expect(one).toMatch(/^SHA-256 [0-9a-f]{64}$/);
  expect(one).not.toBe(other ?? "");
});

test("a report has no more than pages have room for, and a server that has just started has done nothing", () => {
  expect(NO_ACTIVITY).toEqual({
    adminUrl: undefined,
    connections: 0,
    requestsPerSecond: 0,
    requests: 0,
    rejections: 0,
    serverErrors: 0,
    latencies: [],
  });
  const { seenAt: _, ...report } = server("a", { adminUrl: null });
  const isRead = (more: object) => !(ServerReport.read({ ...report, ...more }) instanceof Invalid);
  expect(isRead({ startedAt: 8.64e15, port: 65_535 })).toBeTrue();
  expect([isRead({ startedAt: -1 }), isRead({ port: -1 }), isRead({ port: 65_536 })]).toEqual([
    false,
    false,
    false,
  ]);
  const texts: Record<string, [maxLength: number, of: (text: string) => object]> = {
    id: [100, (id) => ({ id })],
    name: [300, (name) => ({ name })],
    version: [40, (version) => ({ version })],
    adminUrl: [300, (adminUrl) => ({ adminUrl })],
    "name of a setting": [60, (name) => ({ settings: [{ name, value: "x" }] })],
    "value of a setting": [300, (value) => ({ settings: [{ name: "x", value }] })],
  };
  for (const [name, [maxLength, of]] of Object.entries(texts)) {
    const areRead = [maxLength, maxLength + 1].map((length) => isRead(of("x".repeat(length))));
    expect([name, ...areRead]).toEqual([name, true, false]);
  }
  const versions = [40, 41].map((length) => ServerVersion.read({ version: "1".repeat(length) }));
  expect(versions.map((read) => read instanceof Invalid)).toEqual([false, true]);
});
