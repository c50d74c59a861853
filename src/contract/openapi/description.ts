import { ERRORS } from "../errors.ts";

/** The opening chapter of the document, in Markdown. `baseUrl` makes its examples work when pasted. */
export function introduction(baseUrl: string): string {
  const sections = [welcome, firstSteps(baseUrl), keys, limits, bans, paging, retries, integers, caching];
  return [...sections, errors(), orders, deprecation, environments].join("\n\n");
}

const lines = (...text: string[]) => text.join("\n");

const welcome = lines(
  "A pet store over HTTP. List its pets, add one, order one; everything is JSON, and every promise below is",
  "kept to the letter: limits to the request, integers to the digit, writes to the disk before the answer.",
);

const firstSteps = (baseUrl: string) =>
  lines(
    "## First steps",
    "",
    "Put your key in a variable, add a pet, and look at the list:",
    "",
    "```sh",
    "KEY=pet_live_…",
    "",
    `curl -i ${baseUrl}/pets \\`,
    '  -H "Authorization: Bearer $KEY" \\',
    '  -H "Content-Type: application/json" \\',
    `  -d '{"name": "Rex", "categoryId": 7, "status": "available"}'`,
    "",
    `curl -i "${baseUrl}/pets?status=available" \\`,
    '  -H "Authorization: Bearer $KEY"',
    "```",
    "",
    "`HEAD` works wherever `GET` does and answers the same headers without the body. `OPTIONS` lists what a path can do.",
  );

const keys = lines(
  "## Keys",
  "",
  "Every request carries an API key as a bearer token: `Authorization: Bearer <key>`. Without one, or with one that is",
  "mistyped, revoked, expired or from the other environment, the answer is 401, even on a path that does not exist:",
  "who you are is settled first, then what you may still send, and only then what you asked for.",
  "",
  "A key is shown once, when it is made. When one is rolled, the old and the new secret both work for a while, so that",
  "you can change over without a gap.",
);

const limits = lines(
  "## Limits and plans",
  "",
  "| Plan | Requests per minute | Requests per day |",
  "|---|--:|--:|",
  "| Free | 60 | 1,000 |",
  "| Pro | 300 | 10,000 |",
  "| Business | 1,000 | 100,000 |",
  "| Enterprise | custom | custom |",
  "",
  "Each key has two windows. A window opens with the first request that finds none open and closes a minute, or a day,",
  "later. A request counts in both or in neither, and a refused one costs nothing. Every answer, whatever its status,",
  "says where you stand, for the window with the fewest requests left:",
  "",
  "- `X-RateLimit-Limit`: how many requests that window allows",
  "- `X-RateLimit-Remaining`: how many are left",
  "- `X-RateLimit-Reset`: the Unix second at which it closes",
  "",
  "Requests without a valid key are counted by client address, 300 a minute and 10,000 a day.",
  "",
  "### What to do on 429",
  "",
  "Wait as many seconds as `Retry-After` says, then send again; waiting that long always works. If you run many workers",
  "on one key, let them wait longer after each further refusal (exponential backoff), or they will all wake at once.",
);

const bans = lines(
  "## Bans",
  "",
  "A client that does not wait is stopped. Requests refused within one second of the first 429 are forgiven, because",
  "they may have been under way already. Each one refused after that is a strike, and the tenth strike bans the key for",
  "five minutes. A banned key gets 429 with the code `key_banned` and a `Retry-After` that ends with the ban. Requests",
  "during a ban neither extend it nor count; strikes are forgotten when the exhausted window closes.",
);

const paging = lines(
  "## Paging",
  "",
  "Listings are ordered by identifier, oldest first. When there is more, the answer carries",
  '`Link: <…>; rel="next"`: follow that address as it stands until an answer comes without one. Nothing is shown twice',
  "and nothing is left out while others add to the list, and page one million costs what page one does.",
);

const retries = lines(
  "## Retrying safely",
  "",
  "A connection can break after the work is done and before you hear of it. Send an `Idempotency-Key` of your own",
  "making with every `POST`, and repeat the request under the same key until you have an answer: the work is done once,",
  "and for 24 hours every repeat gets the first successful answer again, byte for byte, with",
  "`Idempotent-Replayed: true`. A request that failed did nothing, so its repeat simply tries again.",
);

const integers = lines(
  "## Integers are exact",
  "",
  "Identifiers are 64-bit integers and keep every digit: `9007199254740993` goes in and comes out as itself. A parser",
  "that reads numbers as doubles, as JavaScript's `JSON.parse` does, will round it; use one that does not. Nothing is",
  'coerced: `"7"`, `7.5`, `true` and `null` are no integers, while `7.0` and `7e0` are.',
);

const caching = lines(
  "## Asking whether anything changed",
  "",
  "Answers to `GET` carry an `ETag`. Send it back as `If-None-Match`, and an unchanged answer is 304 without a body.",
  "It still counts as a request.",
);

function errors(): string {
  const rows = Object.entries(ERRORS).map(
    ([code, { status, meaning }]) => `| ${status} | \`${code}\` | ${meaning} |`,
  );
  return lines(
    "## Errors",
    "",
    'Every error has the same body, `{"code", "message", "status"}`. `code` is one of this closed set, so decide on it;',
    "`message` is for people and names every field at fault.",
    "",
    "| Status | Code | Meaning |",
    "|--:|---|---|",
    ...rows,
  );
}

const orders = lines(
  "## Orders",
  "",
  "Ordering a pet makes it `pending`. Completing the order makes it `sold`, cancelling it makes it `available`",
  "again. A pet's status changes in no other way, and always together with its order.",
);

const deprecation = lines(
  "## Deprecation",
  "",
  "Within `/v1` things are only added. Whatever is to go says so at least a year ahead, in each of its answers, with the",
  "headers `Deprecation` and `Sunset`, and then answers 410. At present that is one operation: `GET /pets/{petId}`,",
  "removed on 5 December 2030. Use `GET /pets` with its `status` filter instead.",
);

const environments = lines(
  "## Environments",
  "",
  "Production and staging are the same program with separate data, keys and addresses. Keys beginning with `pet_live_`",
  "work in production only, those beginning with `pet_test_` in staging only.",
);
