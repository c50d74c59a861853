import { Invalid } from "../src/api/schema.ts";
import type { ResourceField } from "../src/domain/fields.ts";
import { PET_FIELDS } from "../src/domain/pets-and-orders.ts";

/**
 * Adds what the service has set in a pet that it made to what was given, so that a test names only that. Throws if the
 * pet lacks a value that the service sets.
 */
export function withServiceValues<T extends object>(given: T, pet: object): T {
  const fields = Object.entries<ResourceField>(PET_FIELDS).filter(([, { setBy }]) => setBy === "service");
  const values = fields.map(([name, { schema }]) => {
    const value: unknown = Reflect.get(pet, name);
    if (schema.read(value) instanceof Invalid) throw new Error(`the service did not set ${name} of a pet`);
    return [name, value];
  });
  return { ...Object.fromEntries(values), ...given };
}
