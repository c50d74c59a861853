import { expect, test } from "bun:test";
import {
  columnOf,
  encoderOf,
  labelOf,
  parseTimes,
  shownValuesOf,
  withChange,
  withoutId,
} from "../../src/domain/fields.ts";
import { ORDER_FIELDS, PET_FIELDS } from "../../src/domain/pets-and-orders.ts";
import { KEY_FIELDS } from "../../src/domain/key-fields.ts";

test("people read the name of a field in words, without what says that it identifies", () => {
  const names = ["petId", "ageMonths", "id", "createdAt"];
  expect(names.map(labelOf)).toEqual(["Pet", "Age months", "Id", "Created at"]);
  expect(names.map(withoutId)).toEqual(["pet", "ageMonths", "id", "createdAt"]);
  expect(names.map(columnOf)).toEqual(["pet_id", "age_months", "id", "created_at"]);
});

test("JSON has the fields in their order, with integers of any size and without what is missing", () => {
  const encode = encoderOf(PET_FIELDS);
  expect(encode({ status: "sold", categoryId: 2n ** 62n, name: 'a"', id: 1n, other: 1 })).toBe(
    '{"id":1,"name":"a\\"","categoryId":4611686018427387904,"status":"sold"}',
  );
  expect(encode({ categoryId: 0n })).toBe('{"categoryId":0}');
  expect(encoderOf(ORDER_FIELDS)({ createdAt: "2026-11-15T12:00:00Z" })).toBe(
    '{"createdAt":"2026-11-15T12:00:00Z"}',
  );
});

test("operators see times as text and null for what is missing, and send them so", () => {
  const { owner, createdAt, perDay } = KEY_FIELDS;
  const fields = { owner, createdAt, perDay };
  const shown = { owner: null, createdAt: "1970-01-01T00:00:00.005Z", perDay: 0 };
  expect(shownValuesOf(fields, { createdAt: 5, perDay: 0 })).toEqual(shown);
  expect(parseTimes(fields, { ...shown, owner: "2026-11-15T12:00:00Z" })).toEqual({
    owner: "2026-11-15T12:00:00Z",
    createdAt: 5,
    perDay: 0,
  });
  expect(withChange({ owner: "a", perDay: 1 }, { owner: null, perDay: 0 })).toEqual({ perDay: 0 } as never);
});
