import type { Subject } from "../src/domain/rate-limit.ts";

export const key = (id: number) => ({ kind: "key", id }) as const satisfies Subject;
export const keys = (count: number) => Array.from({ length: count }, (_, i) => key(i));
export const address = (id: string): Subject => ({ kind: "address", id });
/** The subject as the key of a Map. */
export const textOf = ({ kind, id }: Subject): string => `${kind}:${id}`;
