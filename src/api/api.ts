import type { ErrorTable, Rejection, StandardErrorCode } from "./errors.ts";
import type { Identifier } from "./json.ts";
import type { Infer, ObjectSchema, Schema } from "./schema.ts";

/** A row of the table of operations. */
export interface Operation<Code extends string = string> {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** The path below the base path, with at most one `{parameter}`: the identifier. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  /** The identifier in the path, and the error code of a 404 response. */
  readonly identifier?: { readonly name: string; readonly notFound: Code; readonly description: string };
  readonly query?: Readonly<Record<string, Schema<unknown>>>;
  readonly body?: ObjectSchema<unknown>;
  /**
   * The most rows of what an operation lists that a page looks at, whatever the filters are and however many there are;
   * Infinity if it looks at all.
   */
  readonly maxRowsRead?: number;
  /** Without a body the status is 204. */
  readonly success: {
    readonly status: 200 | 201 | 204;
    readonly description: string;
    readonly body?: Schema<unknown>;
  };
  /** The errors besides those of its input and those that every operation has. */
  readonly errors?: readonly Code[];
}

/** Every list says how many rows it reads. */
export type BoundedList =
  | { readonly query?: { readonly limit?: never } }
  | { readonly query: { readonly limit: Schema<number> }; readonly maxRowsRead: number };

export type Operations = Readonly<Record<string, Operation>>;

interface ApiDefinition<T extends Operations> {
  /** The beginning of every path. */
  readonly basePath: string;
  readonly errors: ErrorTable;
  readonly operations: T;
}

/** The types of the validated input of an operation, and of what its handler returns. */
type QueryOf<O> = O extends { query: infer Q } ? { readonly [K in keyof Q]?: Infer<Q[K]> } : undefined;
type BodyOf<O> = O extends { body: infer B } ? Infer<B> : undefined;
type IdentifierOf<O> = O extends { identifier: object } ? Identifier : undefined;

/** The validated input of the handler of an operation. */
export interface InputOf<O> {
  readonly id: IdentifierOf<O>;
  readonly query: QueryOf<O>;
  readonly body: BodyOf<O>;
}
/** The body of a success; undefined for 204. */
export type SuccessBodyOf<O> = O extends { success: { body: infer B } } ? Infer<B> : undefined;
export type RejectionOf<O> = Rejection<
  | (O extends { errors: readonly (infer C extends string)[] } ? C : never)
  | (O extends { query: object } ? "invalid_parameter" : never)
  | (O extends { body: object } ? (typeof BODY_ERRORS)[number] : never)
  | (O extends { identifier: { notFound: infer C extends string } } ? C : never)
>;

const BODY_ERRORS = ["invalid_json", "invalid_body", "body_too_large", "unsupported_media_type"] as const;

/** The error codes of an operation: those of its input, then those that its row declares. */
export function errorsOf<Code extends string>(operation: Operation<Code>): (Code | StandardErrorCode)[] {
  const { query, body, identifier, errors = [] } = operation;
  return [
    ...(query ? (["invalid_parameter"] as const) : []),
    ...(body ? BODY_ERRORS : []),
    ...(identifier ? [identifier.notFound] : []),
    ...errors,
  ];
}

/** The methods of what can only be read. */
export const READ_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD"]);
/** The value of `Allow` for what can only be read. */
export const READ_ALLOWED = [...READ_METHODS].join(", ");

/** The operations of one path. */
export interface Route<Id extends string = string> {
  /** The operation of each method. HEAD has that of GET. */
  readonly operations: ReadonlyMap<string, Id>;
  /** The value of `Allow`. */
  readonly allowed: string;
}

interface RouteMatch<Id extends string = string> {
  readonly route: Route<Id>;
  /** The identifier in the path; empty if the path has none. */
  readonly identifier: string;
}

/** The place of the identifier in the path of an operation. */
export const IDENTIFIER = /\{\w+\}/;

/** The path of an operation, with an identifier in the place of `{parameter}`. */
export function withIdentifier(path: string, identifier: string): string {
  return path.replace(IDENTIFIER, () => identifier);
}

/** The table of an API, and the router that follows from it. */
export class Api<const T extends Operations> implements ApiDefinition<T> {
  readonly basePath: string;
  readonly errors: ErrorTable;
  readonly operations: T;
  /** The operations with their names. */
  readonly rows: readonly (readonly [keyof T & string, T[keyof T & string]])[];
  /** The value of `Allow` for the API as a whole. */
  readonly allowed: string;
  readonly #fixed = new Map<string, RouteMatch<keyof T & string>>();
  /** The routes with an identifier, by the path with an empty one. */
  readonly #withIdentifier = new Map<string, Route<keyof T & string>>();

  constructor({ basePath, errors, operations }: ApiDefinition<T>) {
    this.basePath = basePath;
    this.errors = errors;
    this.operations = operations;
    this.rows = Object.entries(operations) as [keyof T & string, T[keyof T & string]][];
    this.allowed = routeOf(this.rows).allowed;
    for (const [path, group] of Map.groupBy(this.rows, ([, operation]) => operation.path)) {
      const route = routeOf(group);
      const empty = basePath + withIdentifier(path, "");
      if (IDENTIFIER.test(path)) this.#withIdentifier.set(empty, route);
      else this.#fixed.set(empty, { route, identifier: "" });
    }
  }

  /** Whether a path is below the base path, with or without a route. */
  has(path: string): boolean {
    const { basePath } = this;
    return path.startsWith(basePath) && (path.length === basePath.length || path[basePath.length] === "/");
  }

  /** Finds the route of a path as the client sent it. Below the base path, characters may be percent-encoded. */
  find(sent: string): RouteMatch<keyof T & string> | undefined {
    const path = sent.includes("%") ? sent.split("/").map(decoded).join("/") : sent;
    const fixed = this.#fixed.get(path);
    if (fixed) return fixed;
    const end = path.lastIndexOf("/") + 1;
    const atEnd = this.#withIdentifier.get(path.slice(0, end));
    if (atEnd) return matchOf(atEnd, path.slice(end));
    const start = path.lastIndexOf("/", end - 2) + 1;
    const within = this.#withIdentifier.get(path.slice(0, start) + path.slice(end - 1));
    return within && matchOf(within, path.slice(start, end - 1));
  }
}

function matchOf<Id extends string>(route: Route<Id>, text: string): RouteMatch<Id> | undefined {
  return text === "" ? undefined : { route, identifier: text };
}

/** Percent-decodes a segment. One that cannot be decoded, or has an encoded slash, stays as it is and has no route. */
function decoded(segment: string): string {
  try {
    const text = decodeURIComponent(segment);
    return text.includes("/") ? segment : text;
  } catch {
    return segment;
  }
}

function routeOf<Id extends string>(rows: readonly (readonly [Id, Operation])[]): Route<Id> {
  const operations = new Map<string, Id>();
  for (const [id, { method }] of rows) {
    operations.set(method, id);
    if (method === "GET") operations.set("HEAD", id);
  }
  return { operations, allowed: [...operations.keys(), "OPTIONS"].join(", ") };
}
