import { expect, test } from "bun:test";
import { errorMessage } from "../../src/cli/error-message.ts";
import { quoted } from "../../src/config/quoted.ts";
import { maskSecrets, maskSecretsAndPasswords, SECRET_BEYOND_HINT } from "../../src/domain/masks.ts";
import { generateSecret, hintOf, SECRET_PREFIX } from "../../src/domain/secrets.ts";
import { quotedWithoutSecrets } from "../../src/observe/access-log.ts";
import { sessionToken } from "../../src/operator/sign-in/admin-authentication.ts";
import { generateCode } from "../../src/operator/sign-in/code.ts";
import { generateToken, toNewToken } from "../../src/operator/sign-in/token.ts";

/** A secret of each kind, as the service makes it. */
const SECRETS = {
  production: generateSecret("production"),
  staging: generateSecret("staging"),
  admin: generateToken(),
  code: generateCode(),
  session: sessionToken({ cookie: "a-".repeat(21) + "a", secret: "_b".repeat(21) + "b" }),
} satisfies Record<keyof typeof SECRET_PREFIX, string>;
const ROWS = Object.entries({ ...SECRETS }).map(
  ([kind, secret]) => [kind, secret, new Map(Object.entries(SECRET_PREFIX)).get(kind) ?? ""] as const,
);

const MASKS: Readonly<Record<string, (text: string) => string>> = {
  "the request log": maskSecrets,
  "the access log": quotedWithoutSecrets,
  "error messages": (text) => errorMessage(new Error(text)),
  "quoted values": quoted,
  settings: maskSecretsAndPasswords,
};

test.each(ROWS)("%s: every mask leaves only the beginning of a secret", (_, secret, prefix) => {
  expect(secret).toStartWith(prefix);
  for (const mask of Object.values(MASKS)) expect(mask(`a ${secret}, b`)).toContain(`a ${prefix}…, b`);
});

test.each(ROWS)("%s: the console finds the whole secret", (_, secret) => {
  expect(SECRET_BEYOND_HINT.exec(`a ${secret}, b`)?.[0]).toBe(secret);
});

test("the console finds no secret in a hint", () => {
  for (const hint of [hintOf(SECRETS.production), hintOf(SECRETS.staging), toNewToken(SECRETS.admin).hint])
    expect(SECRET_BEYOND_HINT.test(hint)).toBeFalse();
});

test("a point ends a sentence, not a secret", () => {
  expect(maskSecrets(`${SECRETS.session}. Then ${SECRETS.admin}.`)).toBe("pet_session_…. Then pet_admin_….");
});
