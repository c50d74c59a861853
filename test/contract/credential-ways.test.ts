import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { SETTINGS } from "../../src/config/options.ts";
import type { Options } from "../../src/config/parse-options.ts";

/* The tests of what becomes of each credential. A new one does not compile, or is named, until all is decided. */

const WAYS = [
  "replaced",
  "overlapping",
  "expired",
  "ended",
  "withItsMaker",
  "lowered",
  "inABody",
  "elsewhere",
  "outage",
] as const;
/** The file and the name of a test, or why there is nothing to test. */
type Proof = readonly [file: string, test: string] | string;
interface Credential {
  readonly settings: readonly string[];
  readonly ways: Readonly<Record<(typeof WAYS)[number], Proof>>;
}

const TABLE = "admin/credentials.test.ts";
const KEYS = "admin/keys.test.ts";
const SERVERS = "engines/admin/operators.test.ts";
const SETTING = "admin/setting-tokens.test.ts";
const OPERATOR_IN_A_BODY = [
  "admin/late-bodies.test.ts",
  "%s while the body arrives is rejected as in a new request",
] as const;
const OPERATORS_IN_AN_OUTAGE = [
  "admin/token.test.ts",
  "goes on for a minute while it cannot be read",
] as const;
const OF_A_SIGN_IN = [
  "admin/provider-sign-in.test.ts",
  "a login on the command line, and a code that is left, end with %s",
] as const;
const FOLLOWED = [
  "engines/servers/followed-files.test.ts",
  "a bad file changes nothing and is logged",
] as const;
const NO_ROLE = "it allows one thing alone";
const NOT_SENT = "requests to this server do not have it";
const OWN_FILE = "each server reads its own file";
const LAST_ONE = "the last value stays in use, as in any other time";
const NO_EXPIRY = "the other side decides how long it is valid";

/** What this server sends to another program. */
const sent = (settings: readonly string[], replaced: Proof, overlapping: Proof): Credential => ({
  settings,
  ways: {
    replaced,
    overlapping,
    expired: NO_EXPIRY,
    ended: NO_EXPIRY,
    withItsMaker: NO_EXPIRY,
    lowered: NO_ROLE,
    inABody: NOT_SENT,
    elsewhere: OWN_FILE,
    outage: LAST_ONE,
  },
});

const CREDENTIALS: Readonly<Record<string, Credential>> = {
  "API key": {
    settings: [],
    ways: {
      replaced: [KEYS, "without an overlap the earlier secret stops at once"],
      overlapping: [KEYS, "the earlier one works until the overlap ends"],
      expired: [
        "auth/authenticator.test.ts",
        "is invalid from the instant it expires, before and after it was seen",
      ],
      ended: [KEYS, "requests with it are 401 at once, and a second time changes nothing"],
      withItsMaker: "it belongs to a client, whoever made it",
      lowered: ["http/late-bodies.test.ts", "a key that is %s while the body arrives is rejected"],
      inABody: ["http/late-bodies.test.ts", "a key that is %s while the body arrives is rejected"],
      elsewhere: ["engines/servers/servers.test.ts", "a new secret and a revocation reach all servers"],
      outage: ["engines/auth/stale-caches.test.ts", "accepts no key that was revoked meanwhile"],
    },
  },
  "token of an operator": {
    settings: ["admin-token", "admin-token-file", "metrics-token-file"],
    ways: {
      replaced: [SETTING, "replaces the token of its operator and ends their sessions"],
      overlapping: [TABLE, '"a token that was replaced"(holder)'],
      expired: [TABLE, '"an expired token"'],
      ended: [TABLE, '"the token of a revoked operator"'],
      withItsMaker: [
        "conformance/operator-store.ts",
        "a person of the provider has no token, and one that they made in release 1.3.0 ends with the next sign-in",
      ],
      lowered: [TABLE, "after the role became %s: what the role allows"],
      inABody: OPERATOR_IN_A_BODY,
      elsewhere: [SERVERS, "a token that is rotated, are out on the other server within a second"],
      outage: OPERATORS_IN_AN_OUTAGE,
    },
  },
  session: {
    settings: [],
    ways: {
      replaced: [TABLE, '"a session of a token that was replaced without an overlap"'],
      overlapping: [TABLE, '"a session that a token made before it was replaced"(holder)'],
      expired: [TABLE, '"a session that is 12 hours old"'],
      ended: [TABLE, '"a session of a revoked operator"'],
      withItsMaker: OF_A_SIGN_IN,
      lowered: [TABLE, '"a session whose operator got the role metrics"'],
      inABody: OPERATOR_IN_A_BODY,
      elsewhere: [SERVERS, "a session works on both servers, and signing out on one ends it on the other"],
      outage: ["engines/admin/outages.test.ts", "nobody signs in, and who was there before is still let in"],
    },
  },
  "sign-in code": {
    settings: [],
    ways: {
      replaced: "a code works once; another one does not replace it",
      overlapping: [TABLE, '"a session by a code that was made before the token was replaced"(holder)'],
      expired: ["admin/operators.test.ts", "a code works once, for five minutes, and names its operator"],
      ended: [
        TABLE,
        "a code whose token has ended, or whose operator has expired or is revoked, signs nobody in",
      ],
      withItsMaker: OF_A_SIGN_IN,
      lowered: "its session has the role of its operator at any time",
      inABody: "the body has it",
      elsewhere: [SERVERS, "of two servers that get the same code together, one signs in"],
      outage: ["engines/admin/outages.test.ts", "nobody signs in, and who was there before is still let in"],
    },
  },
  "secret of the webhook": sent(["webhook-secret", "webhook-secret-file"], FOLLOWED, [
    "background/webhook-delivery.test.ts",
    "two secrets make two signatures, and a change of them needs no restart",
  ]),
  "secret at the provider": sent(
    ["oidc-client-secret", "oidc-client-secret-file"],
    FOLLOWED,
    "the provider accepts both for a while",
  ),
  "password of PostgreSQL": sent(
    ["database-url-file"],
    [
      "engines/servers/secrets.test.ts",
      "a new password of PostgreSQL, in the database and in the file of its URL",
    ],
    "sessions stay open when the password changes",
  ),
  certificate: sent(
    ["tls-cert", "tls-key"],
    [
      "system/config/tls.test.ts",
      "a server with a certificate serves HTTPS, and the next certificate without a restart",
    ],
    "open connections keep the certificate with which they began",
  ),
};

const options: Options = SETTINGS;

test("every setting with a secret belongs to a credential", () => {
  const secrets = Object.entries(options).flatMap(([name, { isVariableOnly, isFollowed }]) =>
    isVariableOnly || isFollowed ? name : [],
  );
  const known = Object.values(CREDENTIALS).flatMap(({ settings }) => settings);
  expect(known.toSorted()).toEqual(secrets.toSorted());
});

test.each(Object.entries(CREDENTIALS))(
  "%s: what becomes of it is tested, or there is nothing to test",
  (_, { ways }) => {
    for (const way of WAYS) {
      const proof = ways[way];
      if (typeof proof === "string") continue;
      const [file, name] = proof;
      const text = readFileSync(join(import.meta.dir, "..", file), "utf8");
      expect([way, file, text.includes(name) ? name : "no such test"]).toEqual([way, file, name]);
    }
  },
);
