export type Kind = "list" | "get" | "create";

/** Something that a client wants done, however often it has to ask. */
export interface Operation {
  readonly kind: Kind;
  readonly path: string;
  readonly init: Omit<RequestInit, "headers"> & { readonly headers?: Record<string, string> };
  readonly success: number;
  /** Of the animal to add: no two have the same. */
  readonly name?: string;
}

export function createOf(number: number): Operation {
  const name = `animal ${number}`;
  return {
    kind: "create",
    path: "/pets",
    init: {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": `create-${number}` },
      body: JSON.stringify({ name, categoryId: 1 }),
    },
    success: 201,
    name,
  };
}

/** The first animal has to be there before a load begins. */
export function readOf(number: number): Operation {
  return number % 2 === 0
    ? { kind: "list", path: "/pets", init: {}, success: 200 }
    : { kind: "get", path: "/pets/1", init: {}, success: 200 };
}

export async function addFirst(url: string, key: string): Promise<void> {
  const response = await fetch(`${url}/pets`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` },
    body: '{"name":"the first","categoryId":1}',
  });
  if (response.status !== 201) throw new Error(`the first animal cannot be added: ${await response.text()}`);
}
