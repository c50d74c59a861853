import { describe, expect, test } from "bun:test";
import { postgresUrl } from "../../harness/postgres.ts";
import { valkeyUrl } from "../../harness/valkey.ts";
import { merged, playAll, type Scenario } from "./play.ts";
import { onAnyEngine, scenarios } from "./requests.ts";
import { read, RECORD } from "./responses.ts";

/** What the program responded with when `record.ts` was last run. */
const recorded = read(await Bun.file(RECORD).text());

async function engines(): Promise<string[]> {
  return ["--database-url", await postgresUrl(), "--limits-url", await valkeyUrl()];
}

/** On a busy machine Valkey may take longer than the 25 ms after which usage is counted in process. */
function shared({ flags = [], ...scenario }: Scenario): Scenario {
  return { ...scenario, flags: [...flags, "--limits-timeout", "1s"], engines };
}

const played = await playAll([...scenarios, ...onAnyEngine.map(shared)]);
const onOwn = merged(played.slice(0, scenarios.length));
const onShared = merged(played.slice(scenarios.length));

test("the record holds these requests and no other", () => {
  expect([...onOwn.keys()]).toEqual([...recorded.keys()]);
});

test("the record holds every error code of the API", () => {
  const codes = [...recorded.values()].flatMap((text) =>
    [...text.matchAll(/"code":"(\w+)","message":"…","status":(\d+)/g)].map(
      ([, code, status]) => `${status} ${code}`,
    ),
  );
  expect([...new Set(codes)].toSorted()).toEqual([
    "400 invalid_body",
    "400 invalid_json",
    "400 invalid_parameter",
    "400 malformed_request",
    "401 invalid_api_key",
    "401 missing_api_key",
    "403 read_only_key",
    "404 not_found",
    "404 order_not_found",
    "404 pet_not_found",
    "405 method_not_allowed",
    "408 request_timeout",
    "409 idempotency_conflict",
    "409 order_closed",
    "409 pet_not_available",
    "410 operation_removed",
    "413 body_too_large",
    "414 uri_too_long",
    "415 unsupported_media_type",
    "422 idempotency_key_reused",
    "429 key_banned",
    "429 rate_limited",
    "431 headers_too_large",
    "500 internal_error",
    "501 not_implemented",
    "503 unavailable",
    "505 http_version_not_supported",
  ]);
});

describe.each([
  ["each scenario's own settings", onOwn],
  ["PostgreSQL and Valkey", onShared],
])("with %s, the response is as recorded", (_, responses) => {
  test.each([...responses])("%s", (name, text) => {
    expect(text).toBe(recorded.get(name) ?? "");
  });
});
