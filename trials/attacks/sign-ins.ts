import { sendOnce } from "../harness/http-connection.ts";
import type { IdentityProvider } from "../harness/identity-provider.ts";
import { beginEvery } from "../harness/steady-load.ts";
import { addressOf, postOf } from "./attacks.ts";

/** The number of people who sign in during a measurement. */
export const PEOPLE = 12;

/** People sign in with the provider, and every second one sends the end from the attacker's address. */
export async function signPeopleIn(port: number, provider: IdentityProvider, seconds: number) {
  /** Why people did not get in. */
  const failures: string[] = [];
  const send = async (path: string, body: string, from?: string): Promise<Record<string, unknown>> => {
    const response = await sendOnce(port, postOf(path, body), from);
    if (response.status !== 200) throw new Error(`${path}: status ${response.status}`);
    return Object(JSON.parse(response.body));
  };
  const signIn = async (number: number) => {
    try {
      const { url, ...secrets } = await send("/api/session/provider", "{}");
      const response = await provider.logIn(String(url), "ann");
      const from = number % 2 === 0 ? addressOf(0) : undefined;
      await send("/api/session", JSON.stringify({ provider: { response, ...secrets } }), from);
    } catch (error) {
      failures.push(error instanceof Error ? error.message : String(error));
    }
  };
  await beginEvery((seconds * 1_000) / PEOPLE, signIn, { count: PEOPLE });
  return failures;
}
