import { withIdentifier } from "../api/api.ts";
import { Rejection } from "../api/errors.ts";
import type { Deprecation } from "../public/deprecation.ts";
import { type DocumentedSettings, isPast } from "../public/documented-settings.ts";
import { longDate } from "../text/formatting.ts";

type Settings = Pick<DocumentedSettings, "now">;

/** The rejection of a request after the removal. */
export function operationRemoved(deprecation: Deprecation): Rejection<"operation_removed"> {
  const date = longDate(deprecation.sunset);
  return new Rejection(
    "operation_removed",
    `This operation was removed on ${date}. ${replacements(deprecation, "")}`,
  );
}

/** The description in the OpenAPI document. */
export function deprecatedDescription(deprecation: Deprecation, settings: Settings = {}): string {
  const { sunset } = deprecation;
  const date = longDate(sunset);
  const state = isPast(sunset, settings)
    ? `Removed on ${date}: it responds 410.`
    : `Deprecated. It will be removed on ${date}; from then on it responds 410.`;
  return `${state} ${replacements(deprecation, "`")}`;
}

function replacements({ list, replacement }: Deprecation, quote: "" | "`"): string {
  return `Use ${quote}GET ${list.path}${quote}, or ${quote}GET ${replacement}${quote} for one pet.`;
}

/** The introduction of the page in the reference, in Markdown. */
export function deprecatedIntroduction(
  { since, sunset, replacement }: Deprecation,
  settings: Settings,
): string {
  const state = isPast(sunset, settings)
    ? `**Removed** on ${longDate(sunset)}, deprecated since ${longDate(since)}: it responds 410.`
    : `**Deprecated** since ${longDate(since)}. It will be removed on ${longDate(sunset)}.`;
  return `> ${state} Use \`GET ${replacement}\` instead. [How to migrate](deprecation.md)`;
}

/** The introduction of the guide, in Markdown. */
export function guideIntroduction(
  path: string,
  { sunset, replacement }: Deprecation,
  settings: Settings,
): string {
  const date = longDate(sunset);
  const state = isPast(sunset, settings)
    ? `**\`GET ${path}\` was removed on ${date}**: it responds 410 \`operation_removed\`.`
    : `**\`GET ${path}\` is deprecated and will be removed on ${date} at 00:00 UTC**; from then on it responds 410 \`operation_removed\`.`;
  const one = `[\`GET ${withIdentifier(replacement, "7")}\`](pagination.md#pets-by-their-identifiers)`;
  return `> ${state} Use \`GET /pets\` with the \`status\` filter, or ${one} for one pet.`;
}
