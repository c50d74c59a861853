/** What became of creates. */
export interface Audit {
  readonly acknowledged: number;
  /** Told to a client as done, and not there, or there under another identifier. */
  readonly lost: readonly string[];
  /** There more than once. */
  readonly doubled: readonly string[];
}

/** Reads everything back through the interface and holds it against what clients were told. */
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
    doubled: [...found].filter(([, ids]) => ids.length > 1).map(([name]) => name),
  };
}

async function* allPets(url: string, key: string): AsyncGenerator<{ id: string; name: string }> {
  let next: string | undefined = `${url}/pets?limit=100`;
  while (next !== undefined) {
    const response: Response = await fetch(next, { headers: { Authorization: `Bearer ${key}` } });
    const pets: unknown = await response.json();
    if (!Array.isArray(pets)) throw new Error(`the animals cannot be listed: ${response.status}`);
    for (const { id, name } of pets) yield { id: String(id), name: String(name) };
    next = /<([^>]+)>; rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
  }
}
