import { describe, expect, test } from "bun:test";
import { OPERATIONS } from "../../../src/petstore/operations.ts";
import type { OperationId } from "../../../src/domain/usage-history.ts";
import { DEFAULT_SETTINGS } from "../../../docs/generate.ts";
import { exampleContext, examplesOf } from "../../../src/docs-site/examples.ts";
import { EXAMPLE_LANGUAGES, type ExampleLanguage } from "../../../src/docs-site/page-data.ts";
import { startService } from "../../service.ts";
import { guideExamples, only, outputOf, typeErrorsOf } from "./example-runner.ts";

const LANGUAGES = Object.keys(EXAMPLE_LANGUAGES) as ExampleLanguage[];

const REX = '{"id":1,"name":"Rex","categoryId":7,"status":"available"}';
const order = (status: string) =>
  `{"id":1,"petId":1,"status":"${status}","createdAt":"2026-11-15T12:00:00.000Z"}`;

/** In the order of a reader: later ones use the pet and the order of earlier ones. */
const RESPONSES: Readonly<Record<OperationId, string>> = {
  createPet: REX,
  listPets: `[${REX}]`,
  getPet: REX,
  placeOrder: order("placed"),
  getOrder: order("placed"),
  listOrders: `[${order("placed")}]`,
  updateOrder: order("completed"),
};

const statusOf = (operationId: OperationId) => OPERATIONS[operationId].success.status;

/** As each language prints it. The client library gives objects with bigints. */
const PRINTED: Readonly<Record<ExampleLanguage, (operationId: OperationId) => string>> = {
  curl: (operationId) => RESPONSES[operationId],
  typescript: (operationId) =>
    `${Bun.inspect(JSON.parse(RESPONSES[operationId], (_, value) => (typeof value === "number" ? BigInt(value) : value)))}\n`,
  fetch: (operationId) => `${statusOf(operationId)} ${RESPONSES[operationId]}\n`,
  python: (operationId) => `${statusOf(operationId)} ${RESPONSES[operationId]}\n`,
};

describe("the examples of the operations", () => {
  test.each(LANGUAGES)("in %s print what the server responds", async (language) => {
    const { url: baseUrl, key, stop } = await startService();
    const operationIds = Object.keys(RESPONSES) as OperationId[];
    expect(operationIds.toSorted()).toEqual((Object.keys(OPERATIONS) as OperationId[]).toSorted());
    for (const operationId of operationIds) {
      const examples = examplesOf(operationId, { baseUrl, key });
      expect(await outputOf(only(language, examples))).toBe(PRINTED[language](operationId));
    }
    await stop();
  });
});

test("the examples in TypeScript compile", async () => {
  const context = exampleContext(DEFAULT_SETTINGS);
  const groups = [
    ...Object.keys(OPERATIONS).map((id) => [id, examplesOf(id as OperationId, context)] as const),
    ...guideExamples(context),
  ];
  const programs = groups.map(([name, examples]) => [name, only("typescript", examples).code]);
  expect(await typeErrorsOf(Object.fromEntries(programs))).toBe("");
});
