import type { Subject } from "../src/domain/rate-limit.ts";

export const key = (id: number): Subject => ({ kind: "key", id });
export const address = (id: string): Subject => ({ kind: "address", id });
/** For use as the key of a Map. */
export const textOf = ({ kind, id }: Subject): string => `${kind}:${id}`;
