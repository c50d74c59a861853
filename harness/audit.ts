import { allPets } from "./api-client.ts";

export type Audit = Awaited<ReturnType<typeof audit>>;

/** Compares the pets that the API lists with the acknowledged creates: names with identifiers. */
export async function audit(url: string, key: string, acknowledged: ReadonlyMap<string, string>) {
  const found = new Map<string, string[]>();
  for await (const { id, name } of allPets(url, key)) found.set(name, [...(found.get(name) ?? []), id]);
  return {
    acknowledged: acknowledged.size,
    /** Missing, or there with another identifier. */
    lost: [...acknowledged].filter(([name, id]) => !found.get(name)?.includes(id)).map(([name]) => name),
    duplicated: [...found].filter(([, ids]) => ids.length > 1).map(([name]) => name),
  };
}
