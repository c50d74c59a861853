import { writeJson } from "./exact-json.ts";

/** The results of a program, with the types that its generated code declares. */
export interface Report {
  readonly pet: { id: bigint; name: string; categoryId: bigint };
  readonly pets: readonly { id: bigint; categoryId: bigint }[];
  readonly completed: { id: bigint; petId: bigint; status: string; createdAt: string | Date };
  readonly errorCode: string | undefined;
}

/** Writes the report to standard output for the program that started this one. */
export function report(result: Report): void {
  process.stdout.write(`${writeJson(result)}\n`);
}

/** Returns the data of a result of openapi-fetch or hey-api. */
export function unwrap<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(`the server rejected the request: ${JSON.stringify(error)}`);
  return data;
}
