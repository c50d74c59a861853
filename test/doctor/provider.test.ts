import { afterAll, expect, test } from "bun:test";
import { checkProvider } from "../../src/doctor/provider.ts";
import { startIdentityProvider } from "../../trials/harness/identity-provider.ts";

const provider = await startIdentityProvider();
afterAll(() => provider[Symbol.asyncDispose]());
const { host } = new URL(provider.issuer);

const check = (issuer = provider.issuer) =>
  checkProvider({ issuer, clientId: "petstore", secret: provider.secret, rules: [] });

test("doctor reads the discovery document of the provider, if there is one", async () => {
  expect(await checkProvider(undefined)).toEqual({ findings: [] });
  expect((await check()).findings).toMatchObject([
    { level: "ok", message: `people can sign in with ${host}` },
  ]);
});

test("doctor says what is wrong with the provider", async () => {
  const problem = async (issuer?: string) => {
    const {
      findings: [finding],
    } = await check(issuer);
    expect(finding?.level).toBe("error");
    return finding?.message;
  };
  expect(await problem(`${provider.issuer}/other`)).toBe(
    `nobody can sign in with ${host}: its discovery document: it responds 404`,
  );
  await provider.goAway();
  expect(await problem()).toBe(`nobody can sign in with ${host}: its discovery document: ECONNREFUSED`);
  provider.comeBack();
});
