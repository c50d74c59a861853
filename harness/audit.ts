import { allPets } from "./api-client.ts";

export interface Audit {
  readonly acknowledged: number;
  /** Names of pets that are missing, or have another identifier. */
  readonly lost: readonly string[];
  /** Names that more than one pet has. */
  readonly duplicated: readonly string[];
}

/** Compares the pets that the API lists with the acknowledged creates: names with identifiers. */
export async function audit(
  url: string,
  key: string,
  acknowledged: ReadonlyMap<string, string>,
): Promise<Audit> {
  const found = new Map<string, string[]>();
  for await (const { id, name } of allPets(url, key)) found.set(name, [...(found.get(name) ?? []), id]);
  return {
    acknowledged: acknowledged.size,
    lost: [...acknowledged].filter(([name, id]) => !found.get(name)?.includes(id)).map(([name]) => name),
    duplicated: [...found].filter(([, ids]) => ids.length > 1).map(([name]) => name),
  };
}
