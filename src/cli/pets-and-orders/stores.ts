/** What the `pets` and `orders` commands share. */
import { openStores } from "../../adapters.ts";
import { describeStorage, type StorageConfig } from "../../config/config.ts";
import type { Attribution } from "../../domain/audit.ts";
import type { OperatorStore, Store } from "../../domain/ports.ts";
import { type Context, Failure, type Outcome } from "../command.ts";
import { databaseExists } from "../keys/key-store.ts";

/** The user who runs the command, and the time. */
export function by({ clock, user }: Pick<Context, "clock" | "user">): Attribution {
  return { actor: { kind: "command line", ...(user !== undefined && { name: user }) }, at: clock.now() };
}

export interface PetStores {
  readonly store: Store;
  readonly operators: OperatorStore;
}

/** Opens the stores for the duration of `work`. Servers may be running on them. Undefined without a database. */
export async function withPetStores<T>(
  storage: StorageConfig,
  work: (stores: PetStores) => Promise<T>,
): Promise<T | undefined> {
  if (!databaseExists(storage)) return undefined;
  const { store, operators, close } = await openStores(storage);
  try {
    return await work({ store, operators });
  } finally {
    await close();
  }
}

export interface Target {
  readonly storage: StorageConfig;
  readonly kind: "pet" | "order";
  readonly id: bigint;
}

/** Finds or changes a pet or an order, and shows it. Fails with the reason of a rejection. */
export async function withTarget<T extends object>(
  target: Target,
  work: (stores: PetStores) => Promise<NoInfer<T> | Rejected | undefined>,
  show: (found: T) => Promise<void>,
): Promise<Outcome> {
  const found = await withPetStores(target.storage, work);
  if (found === undefined) return missing(target);
  if (isRejected(found)) return failureOf(found, target);
  await show(found);
  return undefined;
}

/** As the stores return it. */
interface Rejected {
  readonly code: string;
  readonly message: string;
}

function isRejected(result: object): result is Rejected {
  return "code" in result;
}

function failureOf({ code, message }: Rejected, target: Target): Failure {
  if (code.endsWith("_not_found")) return missing(target);
  // "Order 7 is completed. Only placed …" as one line of a command: "order 7 is completed; only placed …".
  const clauses = message.split(". ").map((clause) => clause.charAt(0).toLowerCase() + clause.slice(1));
  return new Failure(clauses.join("; ").replace(/\.$/, ""));
}

function missing({ storage, kind, id }: Target): Failure {
  const { data } = describeStorage(storage);
  return new Failure(
    `${kind} ${id} does not exist in ${storage.environment} (data: ${data}); see petstore ${kind}s list`,
  );
}
