import { curlCommand } from "../../api/curl.ts";
import { duration, grouped, longDate } from "../../api/formatting.ts";
import type { ErrorTable } from "../../api/errors.ts";
import { PROTOCOL_ERRORS } from "../../api/responses.ts";
import { BASE_PATH, IDEMPOTENCY_LIFETIME_MS, KEY_PREFIX } from "../../domain/constants.ts";
import type { Limits } from "../../domain/rate-limit.ts";
import { baseUrlOf, type DocumentedSettings } from "../documented-settings.ts";
import { ERRORS } from "../errors.ts";
import { OPERATIONS } from "../operations.ts";
import text from "./description.md" with { type: "text" };

/** The description of the API in Markdown. */
export function description(settings: DocumentedSettings): string {
  const { environment, plans, ban } = settings;
  const url = `${baseUrlOf(settings)}/pets`;
  const { method, path, deprecated } = OPERATIONS.getPet;
  const values: Readonly<Record<string, string>> = {
    keyPrefix: KEY_PREFIX[environment],
    createPet: curlCommand({
      url,
      key: "$KEY",
      headers: [["Content-Type", "application/json"]],
      body: '{"name": "Rex", "categoryId": 7, "status": "available"}',
      showsHeaders: true,
    }),
    listPets: curlCommand({ url: `${url}?status=available`, key: "$KEY", showsHeaders: true }),
    plans: planTable(plans),
    banGrace: duration(ban.graceMs),
    banStrikes: String(ban.strikes),
    banLength: duration(ban.lengthMs),
    longerBans:
      ban.maxLengthMs > ban.lengthMs
        ? `\n\nA ban within 24 hours of the end of the last one is twice as long as that one, at most ${duration(ban.maxLengthMs)}.`
        : "",
    idempotencyLifetime: duration(IDEMPOTENCY_LIFETIME_MS),
    errors: errorRows(ERRORS),
    protocolErrors: errorRows(PROTOCOL_ERRORS),
    basePath: BASE_PATH,
    deprecatedOperation: `${method} ${path}`,
    sunset: longDate(deprecated.sunset),
    replacement: deprecated.replacement,
    productionPrefix: KEY_PREFIX.production,
    stagingPrefix: KEY_PREFIX.staging,
  };
  return text.trimEnd().replace(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`description.md has the unknown value ${name}`);
    return value;
  });
}

export function planTable({ free, pro, business, anonymous }: DocumentedSettings["plans"]): string {
  return [
    "| Plan | Requests per minute | Requests per day |",
    "| --- | ---: | ---: |",
    planRow("Free", free),
    planRow("Pro", pro),
    planRow("Business", business),
    "| Enterprise | custom | custom |",
    planRow("No valid key", anonymous),
  ].join("\n");
}

function planRow(name: string, { perMinute, perDay }: Limits): string {
  return `| ${name} | ${grouped(perMinute)} | ${grouped(perDay)} |`;
}

function errorRows(errors: ErrorTable): string {
  const rows = Object.entries(errors).map(
    ([code, { status, meaning }]) => `| ${status} | \`${code}\` | ${meaning} |`,
  );
  return ["| Status | Code | Meaning |", "|--:|---|---|", ...rows].join("\n");
}
