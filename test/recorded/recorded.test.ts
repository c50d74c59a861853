import { expect, test } from "bun:test";
import { playAll } from "./play.ts";
import { read, RECORD } from "./responses.ts";
import { SCENARIOS } from "./scenarios.ts";

/** What the program responded with when `record.ts` was last run. */
const recorded = read(await Bun.file(RECORD).text());
const responses = await playAll(SCENARIOS);

test("the record holds these requests and no other", () => {
  expect([...responses.keys()]).toEqual([...recorded.keys()]);
});

/** Status and code of each error, of the public API or of the admin API. */
function errorsOf(isAdmin: boolean): string[] {
  const texts = [...recorded].filter(([name]) => /\badmin\b/.test(name) === isAdmin).map(([, text]) => text);
  const errors = texts.join("\n").matchAll(/^\{"code":"(\w+)",.*"status":(\d+)\}$/gm);
  return [...new Set(errors.map(([, code, status]) => `${status} ${code}`))].toSorted();
}

test("the record holds every error code of the API", () => {
  expect(errorsOf(false)).toEqual([
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

test("the record holds the error codes of the admin API, but for those of a database that fails", () => {
  expect(errorsOf(true)).toEqual([
    "400 invalid_body",
    "400 invalid_json",
    "400 invalid_parameter",
    "400 malformed_request",
    "401 invalid_token",
    "401 not_signed_in",
    "403 forbidden_host",
    "403 forbidden_origin",
    "404 key_not_found",
    "404 not_found",
    "404 order_not_found",
    "404 pet_not_found",
    "405 method_not_allowed",
    "409 key_not_active",
    "409 order_closed",
    "409 pet_has_orders",
    "409 pet_ordered",
    "413 body_too_large",
    "415 unsupported_media_type",
    "429 too_many_attempts",
  ]);
});

test.each([...responses])("the response is as recorded: %s", (name, text) => {
  expect(text).toBe(recorded.get(name) ?? "");
});
