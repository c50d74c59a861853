import { expect, test } from "bun:test";
import type { Variables } from "../../src/config/parse-options.ts";
import { columnOf } from "../../src/domain/fields.ts";
import { KEY_FIELDS, GIVEN_KEY_FIELDS } from "../../src/domain/key-fields.ts";
import { Key } from "../../src/operator/operations/keys.ts";
import { API_KEYS } from "../../src/store/sql/tables.ts";
import type { AdminService } from "../admin/admin-service.ts";
import { InProcessCli } from "../cli/cli.ts";
import { sampleOf } from "../samples.ts";

/** The values of all fields that operators write, as audit entries and exports have them. */
function valuesOf(which: number, now: number): Record<string, unknown> {
  const values = Object.entries(GIVEN_KEY_FIELDS).map(([name, { schema }]) => [
    name,
    sampleOf(schema.kind === "nullable" ? schema.inner.json : schema.json, which),
  ]);
  const expiresAt = new Date(now + which * 3_600_000).toISOString();
  return { ...Object.fromEntries(values), expiresAt };
}

const NULLS = Object.fromEntries(
  Object.entries(GIVEN_KEY_FIELDS).flatMap(([name, field]) => ("ifMissing" in field ? [[name, null]] : [])),
);

/** The values with the limits as the operators' API has them. */
function bodyOf({ perMinute, perDay, ...values }: Record<string, unknown>) {
  return { ...values, limits: values["plan"] === "enterprise" ? { perMinute, perDay } : null };
}

/** What an operator writes about a key is saved, shown, audited and exported. `variables` are those of its commands. */
export function declaredKeyCases(service: AdminService, variables: () => Variables): void {
  const exported = async (id: unknown) => {
    const { out } = await new InProcessCli().run("export keys --format ndjson", variables());
    const rows = out
      .trimEnd()
      .split("\n")
      .map((line): Record<string, unknown> => JSON.parse(line));
    return rows.find((row) => row["id"] === id);
  };
  const lastEntry = async (id: unknown) => {
    const { items } = await service.ok(`/api/audit?target=key:${id}&limit=1`);
    return Object(Array.isArray(items) ? items[0] : undefined);
  };

  test("operators see every field of a key; a copy has them, too", () => {
    const hidden = new Set(["perMinute", "perDay", "disabledAt"]);
    const names = Object.keys(KEY_FIELDS);
    expect(Key.names).toEqual(expect.arrayContaining(names.filter((name) => !hidden.has(name))));
    expect(Object.keys(API_KEYS.columns)).toEqual(expect.arrayContaining(names.map(columnOf)));
  });

  test("a key that is created and changed keeps, shows, audits and exports every field", async () => {
    // The second values differ from the first in every field.
    const [first, second] = [2, 3].map((which) => valuesOf(which, service.clock.now()));
    const { perMinute: _, perDay: __, ...withoutLimits } = first ?? {};
    const { key } = await service.ok("POST /api/keys", { body: bodyOf({ ...first }) });
    const { id, createdAt } = Object(key);
    expect(key).toMatchObject({ ...withoutLimits, limits: expect.anything() });
    const { after: created } = await lastEntry(id);
    expect(created).toEqual({ ...withoutLimits, hint: expect.any(String) });

    const changed = await service.ok(`PATCH /api/keys/${id}`, { body: bodyOf({ ...second }) });
    expect(changed).toMatchObject(bodyOf({ ...second }));
    expect(await service.ok(`/api/keys/${id}`)).toEqual(changed);
    expect((await service.ok("/api/keys?limit=100"))["items"]).toContainEqual(changed);
    const { before, after } = await lastEntry(id);
    expect(before).toEqual({ ...withoutLimits, perMinute: null, perDay: null });
    expect(after).toEqual({ ...second });
    const row = { id, ...second, createdAt, revokedAt: null, disabledAt: null };
    expect(await exported(id)).toEqual(row);

    const cleared = { ...second, plan: "free", ...NULLS };
    await service.ok(`PATCH /api/keys/${id}`, { body: bodyOf(cleared) });
    await service.ok(`POST /api/keys/${id}/disable`, { body: {} });
    await service.ok(`POST /api/keys/${id}/revoke`, { body: {} });
    const time = expect.stringMatching(/Z$/);
    expect(await exported(id)).toEqual({ ...row, ...cleared, revokedAt: time, disabledAt: time });
  });
}
