import type { Services } from "../services.ts";

/** The names of the keys with these identifiers. What has no key has none. */
export async function keyNamesOf(
  keys: Pick<Services["keys"], "getKeys">,
  ids: readonly (number | null | undefined)[],
): Promise<ReadonlyMap<number | null | undefined, string>> {
  const found = await keys.getKeys([...new Set(ids.flatMap((id) => id ?? []))]);
  return new Map(found.map(({ id, name }) => [id, name]));
}
