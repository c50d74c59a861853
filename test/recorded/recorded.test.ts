import { expect, test } from "bun:test";
import type { ErrorTable } from "../../src/api/errors.ts";
import { PROTOCOL_ERRORS } from "../../src/api/protocol-errors.ts";
import { ADMIN_ERRORS } from "../../src/operator/errors.ts";
import { OPERATION_IDS } from "../../src/domain/operation-ids.ts";
import { ERRORS } from "../../src/petstore/errors.ts";
import { OPERATIONS } from "../../src/petstore/operations.ts";
import { playAll } from "./play.ts";
import { readRecord } from "./record.ts";
import { SCENARIOS } from "./scenarios.ts";

const recorded = await readRecord();

let played: ReturnType<typeof playAll> | undefined;
/** Played by the first test that needs it, so that what fails then is an error of each test, with its cause. */
const responses = () => (played ??= playAll(SCENARIOS));

test("the record holds these requests and no other", async () => {
  expect([...(await responses()).keys()]).toEqual([...recorded.keys()]);
}, 300_000);

test.each(OPERATION_IDS)("the record holds a success of %s", (id) => {
  const name = `${id} ${OPERATIONS[id].success.status}: `;
  expect([...recorded.keys()].filter((each) => each.startsWith(name))).not.toEqual([]);
});

/**
 * Those of a database that fails, and those of HTTP itself, are recorded of the public API. Those of a provider are
 * tested with one, in `provider-sign-in.test.ts`.
 */
const notRecorded = new Set(["internal_error", "unavailable"]);
const ofProvider = new Set(["rejected_sign_in", "sign_in_not_allowed", "provider_unavailable"]);
const adminErrors = Object.fromEntries(
  Object.entries(ADMIN_ERRORS).filter(([code]) => !notRecorded.has(code) && !ofProvider.has(code)),
);
test.each<[string, ErrorTable]>([
  ["public", { ...ERRORS, ...PROTOCOL_ERRORS }],
  ["admin", { ...adminErrors, malformed_request: { status: 400, meaning: "" } }],
])("the record holds every error code of the %s API", (api, errors) => {
  const texts = [...recorded].filter(([name]) => /\badmin\b/.test(name) === (api === "admin"));
  const found = texts.join("\n").matchAll(/^\{"code":"(\w+)",.*"status":(\d+)[,}]/gm);
  const expected = Object.entries(errors).map(([code, { status }]) => `${status} ${code}`);
  expect(new Set([...found].map(([, code, status]) => `${status} ${code}`))).toEqual(new Set(expected));
});

test.each([...recorded])("the response is as recorded: %s", async (name, text) => {
  expect((await responses()).get(name)).toBe(text);
});
