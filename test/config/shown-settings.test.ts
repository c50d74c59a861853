import { expect, test } from "bun:test";
import { SETTINGS } from "../../src/config/options.ts";
import { sourceOf } from "../../src/config/parse-options.ts";
import { reportedSettings } from "../../src/config/reported-settings.ts";
import { shownSettings } from "../../src/config/shown-settings.ts";
import { expiry, timeOf } from "../../src/config/value-types.ts";
import { parseValues, shownWith, usageError } from "./parsing.ts";

const FLAGS = {
  port: ["9000"],
};
const VARIABLES = {
  PETSTORE_ADMIN_TOKEN_FILE: "/run/token",
  PETSTORE_TRUST_PROXY: "10.0.0.9, 10.0.0.2",
  PETSTORE_DRAIN_DELAY: "5s",
};

const shown = shownSettings(
  SETTINGS,
  { ...parseValues(FLAGS, { ...VARIABLES, PETSTORE_ADMIN_TOKEN_FILE: "" }), "admin-token": "a-s3cret" },
  {
    source: (flag) => sourceOf(flag, FLAGS, VARIABLES),
    envFileVariables: new Set(["PETSTORE_DRAIN_DELAY"]),
  },
);

test("operators see the value, the default and the source of each setting, and no secret", () => {
  const rows = shown.map(({ name, variable, value, default: initial, source, help, isVariableOnly }) => {
    expect(variable).toBe(`PETSTORE_${name.toUpperCase().replaceAll("-", "_")}`);
    const only = isVariableOnly ? ["variable only"] : [];
    return [name, [value, initial, source, help.split("; ").at(-1), ...only]] as const;
  });
  expect(Object.fromEntries(rows)).toMatchObject({
    port: ["9000", "8080, or 8081 in staging", "flag", "0 for any free port"],
    host: ["127.0.0.1", "127.0.0.1", "default", "0.0.0.0 or :: for all addresses of the machine"],
    "env-file": [null, null, "default", "read at the start only"],
    "admin-token": ["…", null, "variable", "That token itself", "variable only"],
    "webhook-secret": [null, null, "default", "That secret itself", "variable only"],
    "trust-proxy": ["10.0.0.9/32, 10.0.0.2/32", "none", "variable", "can be repeated"],
    "cors-origin": [null, "none", "default", "can be repeated"],
    "metrics-public": ["false", null, "default", "Respond to /metrics on that listener without the token"],
    "drain-delay": [
      "5s",
      "0",
      "env file",
      "Time to keep serving after a stop signal, while /healthz responds 503",
    ],
  });
  expect(JSON.stringify(shown)).not.toContain("s3cret");
});

test("a server reports the settings that all servers should share", () => {
  const { settings } = reportedSettings(shown, "http://127.0.0.1:9000/v1");
  expect(settings.map(({ name, value }) => `${name}: ${value}`)).toEqual([
    "public-url: http://127.0.0.1:9000/v1",
    "metrics-public: false",
    "audit-retention: 400d",
    "oidc-issuer: none",
    "oidc-client-id: not set",
    "oidc-role: not set",
    "webhook-url: none",
    "webhook-events: ban-rules.updated,data.restored,key.banned,key.expires-soon,operator.*,plan.*",
    "other-environment-url: none",
    "trust-proxy: 10.0.0.2/32,10.0.0.9/32",
    "cors-origin: none",
    "max-connections-per-address: 256",
    "drain-delay: 5s",
    "access-log-omit: none",
    "otlp-sample: 0.01",
  ]);
});

test.each([
  ["admin-address", "off"],
  ["admin-address", "[::1]:9000"],
  ["admin-address", "petstore.internal:0"],
  ["request-log", "0"],
  ["request-log", "1MB"],
  ["request-log", "1024MB"],
  ["audit-retention", "forever"],
  ["audit-retention", "30d"],
  ["max-connections", "1000000"],
  ["otlp-sample", "0.25"],
])("--%s %s is shown as it is typed", (name, text) => {
  expect(shownWith({ [name]: [text] }).find((each) => each.name === name)?.value).toBe(text);
});

test.each([
  ["0MB", ""],
  ["1025MB", ""],
  ["1.5MB", ""],
  ["64KB", ""],
  ["MB", ""],
  ["2048", ""],
  ["64", " (did you mean 64MB?)"],
])("--request-log %s is no size", (text, hint) => {
  expect(usageError({ "request-log": [text] })).toBe(
    `--request-log is "${text}"; it must be a size from 1MB to 1024MB, or 0${hint}`,
  );
});

test.each([
  ["1s", 1_000],
  ["3650d", 3_650 * 86_400_000],
  ["1970-01-02", 86_400_000],
  ["999ms", undefined],
  ["3651d", undefined],
  ["0", undefined],
])("what expires in, or at, %s expires at %p", (text, at) => {
  const value = expiry.parse(text);
  expect(value && timeOf(value, 0)).toBe(at);
});

test("a number without its unit is completed to the likely expiry", () => {
  expect(expiry.hint?.("90")).toBe("did you mean 90s?");
  expect(expiry.hint?.("tomorrow")).toBeUndefined();
});
