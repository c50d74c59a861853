import type { ProviderConfig } from "../config/config.ts";
import type { StoreFindings } from "./stored-data.ts";
import { scheduler } from "../runtime/scheduler.ts";
import { check } from "./finding.ts";

const provider = check("sign-in");

/** Checks the discovery document of the provider. A person has to sign in to check the client and its secret. */
export async function checkProvider(configured: ProviderConfig | undefined): Promise<StoreFindings> {
  if (configured === undefined) return { findings: [] };
  const { issuer, clientId, secret, rules } = configured;
  const { Provider, ProviderError } = await import("../operator/sign-in/provider.ts");
  try {
    await new Provider({ issuer, clientId, secret: () => secret, rules }, () => scheduler.now()).check();
    return { findings: [provider.ok(`people can sign in with ${new URL(issuer).host}`)] };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    const problem = `nobody can sign in with ${new URL(issuer).host}: ${error.message}`;
    const remedy = "correct --oidc-issuer, or see to the provider; tokens work meanwhile";
    return { findings: [provider.error(problem, remedy)] };
  }
}
