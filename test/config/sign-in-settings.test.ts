import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { cleanUpAfterAll, InProcessCli, wrongUsage } from "../cli/cli.ts";
import { parseConfig, parseValues, usageError, shownWith } from "./parsing.ts";

cleanUpAfterAll();

const secretFile = join(temporaryDirectory("client-secret"), "secret");
writeFileSync(secretFile, "s3cret-of-the-client\n");
const FLAGS = {
  "oidc-issuer": ["https://login.example.com/tenant/"],
  "oidc-client-id": ["petstore"],
  "oidc-client-secret-file": [secretFile],
  "oidc-role": ["groups=petstore-admins:admin", "hd=example.com:viewer"],
};

test("the settings of a provider go together; what is shown has no secret", () => {
  const provider = parseConfig({ ...FLAGS, "admin-address": ["127.0.0.1:0"] }).admin?.provider;
  expect(provider).toEqual({
    issuer: "https://login.example.com/tenant/",
    clientId: "petstore",
    secret: "s3cret-of-the-client",
    secretFile,
    rules: [
      { claim: "groups", value: "petstore-admins", role: "admin" },
      { claim: "hd", value: "example.com", role: "viewer" },
    ],
  });
  const shown = shownWith(FLAGS);
  expect(shown.find(({ name }) => name === "oidc-role")?.value).toBe(
    "groups=petstore-admins:admin, hd=example.com:viewer",
  );
  expect(JSON.stringify(shown)).not.toContain("s3cret");
});

test("a value may have colons, equals signs and commas, as names in a directory have", () => {
  const rule = "memberOf=CN=Pet Store,OU=Groups,DC=example:8,DC=com:admin";
  expect(parseValues({ "oidc-role": [rule, "a=b:viewer"] })["oidc-role"]).toEqual([
    { claim: "memberOf", value: "CN=Pet Store,OU=Groups,DC=example:8,DC=com", role: "admin" },
    { claim: "a", value: "b", role: "viewer" },
  ]);
});

test.each([
  "groups=admins",
  "groups:admin",
  "=a:admin",
  "groups=:admin",
  "groups=a:metrics",
  "a=b:viewer,",
  "",
])("the rule %j is rejected", (rule) =>
  expect(usageError({ "oidc-role": [rule] })).toContain("it must be a claim, a value and a role"),
);

test("a misspelt role is an error with a suggestion", () => {
  expect(usageError({ "oidc-role": ["groups=a:admn"] })).toContain("did you mean groups=a:admin?");
});

test.each([
  "http://login.example.com",
  "https://user@a.example",
  "https://a.example/?a=b",
  "login.example.com",
])("the issuer %s is rejected", (url) =>
  expect(usageError({ "oidc-issuer": [url] })).toContain("it must be the https:// URL of the issuer"),
);

test("the URL of a discovery document is an error with a suggestion; http is for this machine only", () => {
  const document = "https://a.example/b/.well-known/openid-configuration";
  expect(parseValues({ "oidc-issuer": ["http://127.0.0.1:8080/realms/pets"] })["oidc-issuer"]).toBe(
    "http://127.0.0.1:8080/realms/pets",
  );
  expect(usageError({ "oidc-issuer": [document] })).toContain("did you mean https://a.example/b?");
});

test("serve with some of the settings does not start, and names those that are missing", async () => {
  const message =
    "--oidc-issuer, --oidc-client-id, --oidc-client-secret-file, --oidc-role belong together; missing: --oidc-client-id, --oidc-role";
  const flags = `--oidc-issuer https://a.example --oidc-client-secret-file ${secretFile}`;
  expect(await new InProcessCli().run(`serve --port 0 ${flags}`)).toEqual(wrongUsage(message));
});
