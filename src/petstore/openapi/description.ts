import { curlCommand } from "../../api/curl.ts";
import { duration, grouped, longDate } from "../../api/formatting.ts";
import { PROTOCOL_ERRORS } from "../../api/responses.ts";
import { IDEMPOTENCY_LIFETIME_MS, KEY_PREFIX } from "../../domain/constants.ts";
import { baseUrlOf, type DocumentedSettings } from "../documented-settings.ts";
import { ERRORS } from "../errors.ts";
import { BASE_PATH, OPERATIONS } from "../operations.ts";

/** The description of the API in Markdown. */
export function description(settings: DocumentedSettings): string {
  return [
    overview,
    quickstart(settings),
    authentication,
    rateLimits(settings.plans),
    bans(settings.ban),
    pagination,
    idempotency,
    integers,
    conditionalRequests,
    errors(),
    orders,
    deprecation,
    environments,
  ].join("\n\n");
}

const lines = (...text: string[]) => text.join("\n");

const overview = lines(
  "A pet store over HTTP. With an API key you can list pets, add pets, and place, complete or cancel orders. Requests",
  "and responses are JSON. A write is on disk before its response is sent.",
);

function quickstart(settings: DocumentedSettings): string {
  const baseUrl = baseUrlOf(settings);
  return lines(
    "## Quickstart",
    "",
    "Put your API key in a variable, add a pet, and list the available ones:",
    "",
    "```sh",
    `KEY=${KEY_PREFIX[settings.environment]}…`,
    "",
    curlCommand({
      url: `${baseUrl}/pets`,
      key: "$KEY",
      headers: [["Content-Type", "application/json"]],
      body: '{"name": "Rex", "categoryId": 7, "status": "available"}',
      showsHeaders: true,
    }),
    "",
    curlCommand({ url: `${baseUrl}/pets?status=available`, key: "$KEY", showsHeaders: true }),
    "```",
    "",
    "`HEAD` works wherever `GET` does and responds with the same headers without the body. `OPTIONS` lists the methods of",
    "a path.",
  );
}

const authentication = lines(
  "## Authentication",
  "",
  "Send your API key as a bearer token with every request: `Authorization: Bearer <key>`. Without a key, or with one that",
  "is mistyped, revoked, expired or from the other environment, the response is 401. The service authenticates a request",
  "first, then applies the rate limits, then looks at the path: a request without a key gets 401 on an unknown path too.",
  "",
  "A key is shown once, when it is created. When a key is rotated, its old and its new secret both work for a time.",
  "",
  "A key is read-only if it was created so: it may use `GET`, `HEAD` and `OPTIONS`. Every other method is 403",
  "`read_only_key`, on an unknown path too, and counts against the rate limit.",
);

export function planTable({ free, pro, business, anonymous }: DocumentedSettings["plans"]): string {
  return lines(
    "| Plan | Requests per minute | Requests per day |",
    "| --- | ---: | ---: |",
    planRow("Free", free),
    planRow("Pro", pro),
    planRow("Business", business),
    "| Enterprise | custom | custom |",
    planRow("No valid key", anonymous),
  );
}

function rateLimits(plans: DocumentedSettings["plans"]): string {
  return lines(
    "## Rate limits",
    "",
    planTable(plans),
    "",
    "Each key has two windows. A window opens with the first request that finds it closed, and closes a minute, or a day,",
    "later. A request counts in both windows or in neither, and a rejected request costs nothing. Every response to a",
    "request that is valid HTTP, whatever its status, describes the window with the fewest requests left:",
    "",
    "- `X-RateLimit-Limit`: the requests that the window allows",
    "- `X-RateLimit-Remaining`: the requests that are left",
    "- `X-RateLimit-Reset`: the Unix time in seconds at which the window closes",
    "",
    "Requests without a valid key are counted by IP address.",
    "",
    "### Handling 429",
    "",
    "Wait as many seconds as `Retry-After` says, then send the request again. If several workers share a key, use",
    "exponential backoff with jitter: add a random delay, and double its range after each further 429.",
  );
}

function planRow(name: string, { perMinute, perDay }: DocumentedSettings["plans"]["free"]): string {
  return `| ${name} | ${grouped(perMinute)} | ${grouped(perDay)} |`;
}

function bans({ strikes, graceMs, lengthMs, maxLengthMs }: DocumentedSettings["ban"]): string {
  return lines(
    "## Bans",
    "",
    `A client that keeps sending requests after a 429 gets its key banned. Requests rejected within ${duration(graceMs)} of the`,
    "first 429 have no consequence; they may have been sent before it arrived. Every later rejected request is a strike.",
    `With ${strikes} strikes the key is banned for ${duration(lengthMs)}. A banned key gets 429 with the code \`key_banned\`,`,
    "and `Retry-After` ends with the ban. Requests during a ban do not extend it and do not count. Strikes expire when the",
    "exhausted window closes.",
    ...(maxLengthMs > lengthMs
      ? [
          "",
          `A ban within 24 hours of the end of the last one is twice as long as that one, at most ${duration(maxLengthMs)}.`,
        ]
      : []),
  );
}

const pagination = lines(
  "## Pagination",
  "",
  "Lists are in ascending order of their identifiers. If there are more items, the response has a",
  '`Link: <…>; rel="next"` header. Follow that URL as it is until a response has no such link. Items that are added',
  "meanwhile cause no duplicates and no gaps.",
);

const idempotency = lines(
  "## Idempotency",
  "",
  "If a connection breaks, you cannot tell whether your `POST` was executed. Send an `Idempotency-Key` with it, and you can",
  "retry it with the same key until you get a response: it is executed once. For",
  `${duration(IDEMPOTENCY_LIFETIME_MS)} every retry gets the first successful response again, byte for byte, with`,
  "`Idempotent-Replayed: true`. A request that failed did nothing, so a retry executes it.",
);

const integers = lines(
  "## Integers",
  "",
  "Identifiers are 64-bit integers and keep every digit: `9007199254740993` comes back unchanged. A parser that reads",
  "numbers as doubles, such as JavaScript's `JSON.parse`, rounds it; use one that does not. Values are never converted:",
  '`"7"`, `7.5`, `true` and `null` are not integers; `7.0` and `7e0` are.',
);

const conditionalRequests = lines(
  "## Conditional requests",
  "",
  "Every 200 response to `GET` has an `ETag`. Send it in `If-None-Match`, and you get 304 without a body if nothing changed.",
  "A 304 counts against the rate limit.",
);

function errorTable(errors: Readonly<Record<string, { status: number; meaning: string }>>): string {
  const rows = Object.entries(errors).map(
    ([code, { status, meaning }]) => `| ${status} | \`${code}\` | ${meaning} |`,
  );
  return lines("| Status | Code | Meaning |", "|--:|---|---|", ...rows);
}

function errors(): string {
  return lines(
    "## Errors",
    "",
    'Every error has the same body, `{"code", "message", "status"}`. `code` is one of this closed set, for programs.',
    "`message` is for people and names every invalid field.",
    "",
    errorTable(ERRORS),
    "",
    "These responses precede authentication. They have no rate limit headers, and the connection closes:",
    "",
    errorTable(PROTOCOL_ERRORS),
  );
}

const orders = lines(
  "## Orders",
  "",
  "An order belongs to the API key that placed it; rotating the key keeps its orders. Other keys cannot list, fetch or",
  "update it: for them it does not exist, and the response is 404 `order_not_found`. Pets are shared by all keys.",
  "",
  "Placing an order makes the pet `pending`. Completing the order makes it `sold`, cancelling it makes it `available`.",
  "Order and pet change in one transaction. Nothing else changes the status of a pet.",
);

const { method, path, deprecated } = OPERATIONS.getPet;
const deprecation = lines(
  "## Deprecation",
  "",
  `Within \`${BASE_PATH}\` we only add. A removal is announced at least a year ahead, in the \`Deprecation\` and \`Sunset\``,
  "headers of each response; after it the operation responds 410. One operation is deprecated:",
  `\`${method} ${path}\` is removed on ${longDate(deprecated.sunset)}. Use \`GET ${deprecated.replacement}\` instead`,
  "instead.",
);

const environments = lines(
  "## Environments",
  "",
  "Production and staging have separate base URLs, data and keys. Keys that begin with",
  `\`${KEY_PREFIX.production}\` work in production only, keys that begin with \`${KEY_PREFIX.staging}\` in staging only.`,
);
