import { type Config, whereIs } from "../config.ts";
import { hashSecret, generateSecret } from "../domain/api-keys.ts";
import { limitsOf } from "../domain/plans.ts";
import type { KeyStore } from "../domain/ports.ts";
import { type Context, Failure } from "./command.ts";
import { explain } from "./explain.ts";
import { limitsInWords } from "./key-view.ts";
import { shownOnce } from "./secret.ts";
import { columns } from "./table.ts";

interface Served {
  readonly url: string;
  readonly keys: KeyStore;
}

/** Says where everything is, with a first key for a newcomer, in one piece. */
export async function greet(
  served: Served,
  config: Config,
  { clock, print }: Pick<Context, "clock" | "print">,
): Promise<Failure | undefined> {
  const first = await firstKey(served, config, clock.now());
  try {
    await print(greeting(config, served.url) + (first?.text ?? ""));
    return undefined;
  } catch (error) {
    if (first === undefined) throw error;
    // Nobody has seen its secret, or only half of it: it must not go on working unwatched.
    await served.keys.updateKey(first.id, { revokedAt: clock.now() });
    return new Failure(
      `${explain(error)}, so the first key could not be shown and is revoked; make another with petstore keys create`,
    );
  }
}

function greeting(config: Config, url: string): string {
  const origin = url.replace(/\/v1$/, "");
  const { data, limits } = whereIs(config);
  const rows = [
    ["  Interface", url],
    ["  Docs", `${origin}/docs`],
    ["  OpenAPI", `${origin}/openapi.json`],
    ["  Data", data],
    ["  Limits", limits],
  ];
  return `Petstore is serving ${config.environment}. Stop it with Ctrl-C.\n\n${columns(rows)}\n`;
}

/** A newcomer leaves with a key in hand; once any key was ever made, no later start prints one. */
async function firstKey({ keys, url }: Served, config: Config, now: number) {
  const secret = generateSecret(config.environment);
  const draft = { name: "first key", plan: "free", createdAt: now } as const;
  const key = await keys.createFirstKey(draft, hashSecret(secret));
  if (key === undefined) return undefined;
  const limits = limitsInWords(limitsOf(key, config.plans));
  const about = `No key existed yet, so here is one (${key.plan}: ${limits}):`;
  return { id: key.id, text: `${about}\n${shownOnce(secret, url)}\n` };
}
