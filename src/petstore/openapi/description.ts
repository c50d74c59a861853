import { KEY_PREFIX } from "../../domain/constants.ts";
import { docsUrl, type DocumentedSettings } from "../documented-settings.ts";

/** The description of the API in Markdown. The documentation has the rest. */
export function description({ baseUrl, environment }: DocumentedSettings): string {
  const docs = docsUrl(baseUrl);
  return [
    "A pet store over HTTP: list pets, add pets, and place, complete or cancel orders. Requests and responses are JSON.",
    `Send your API key with every request, as \`Authorization: Bearer ${KEY_PREFIX[environment]}…\`; see [Authentication](${docs}/authentication).`,
    `Each key has [rate limits](${docs}/rate-limits): after a 429, wait \`Retry-After\` seconds. To read a whole list, follow its [\`Link\` headers](${docs}/pagination).`,
    `A \`POST\` with an [\`Idempotency-Key\`](${docs}/idempotency) is safe to retry. [Integers](${docs}/integers) have 64 bits: read them without rounding.`,
    `Every error has one of these [codes](${docs}/errors). The [documentation](${docs}) has examples in four languages.`,
  ].join("\n");
}
