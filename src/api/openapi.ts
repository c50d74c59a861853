import type { Operation } from "./api.ts";
import type { ErrorTable } from "./errors.ts";
import { int64, type JsonSchema, type Schema } from "./schema.ts";

/** A parameter of an operation, as OpenAPI writes it. */
export type Parameter = {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description: string;
  readonly schema: JsonSchema;
  readonly example?: unknown;
};

interface Document extends JsonSchema {
  readonly components: Readonly<Record<string, JsonSchema>>;
}

/** Replaces each component within the document by a reference to it. */
export function withReferences(document: Document): JsonSchema {
  const kinds = new Set<unknown>(Object.values(document.components));
  const references = new Map<unknown, JsonSchema>();
  for (const [kind, components] of Object.entries(document.components))
    for (const [name, component] of Object.entries(components))
      references.set(component, { $ref: `#/components/${kind}/${name}` });

  function convert(value: unknown, parent?: unknown): unknown {
    const reference = references.get(value);
    if (reference !== undefined && !kinds.has(parent)) return reference;
    if (Array.isArray(value)) return value.map((item) => convert(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, convert(field, value)]));
  }
  return convert(document) as JsonSchema;
}

type CodesOf<O extends Operation> = NonNullable<O["errors"]>;

/** What an API adds to the facts in its table. */
interface OpenApiOptions<Id extends string, O extends Operation> {
  readonly parametersOf: (operation: O) => readonly Parameter[];
  /** Examples, headers of the success, and responses that are neither the success nor an error, such as 304. */
  readonly additionsOf?: (
    id: Id,
    operation: O,
  ) => {
    /** Replaces the description in the table. */
    description?: string;
    request?: JsonSchema;
    success: JsonSchema;
    headers: JsonSchema;
    responses: JsonSchema;
  };
  readonly errorResponse: (status: number, codes: CodesOf<O>, operation: O) => JsonSchema;
  /** Returns all error codes of an operation. */
  readonly errorsOf: (operation: O) => CodesOf<O>;
  /** Returns `deprecated`, and `security` where it differs from that of the document. */
  readonly flags: (operation: O) => JsonSchema;
}

interface Table<Id extends string, O extends Operation> {
  readonly errors: ErrorTable;
  readonly operations: Readonly<Record<Id, O>>;
}

/** Returns the `paths` of an OpenAPI 3.1 document. */
export function openApiPaths<Id extends string, O extends Operation>(
  { errors, operations }: Table<Id, O>,
  { parametersOf, additionsOf, errorResponse, errorsOf, flags }: OpenApiOptions<Id, O>,
): JsonSchema {
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const [id, operation] of Object.entries(operations) as [Id, O][]) {
    const { method, path, tag, summary, description, body, success } = operation;
    const parameters = parametersOf(operation);
    const additions = additionsOf?.(id, operation);
    const groups = Map.groupBy(errorsOf(operation), (code) => errors[code]?.status ?? 500);
    const failures = [...groups].map(([status, codes]) => [status, errorResponse(status, codes, operation)]);
    (paths[path] ??= {})[method.toLowerCase()] = {
      operationId: id,
      tags: [tag],
      summary,
      description: additions?.description ?? description,
      ...flags(operation),
      ...(parameters.length > 0 && { parameters }),
      ...(body && {
        requestBody: { required: !body.isEmptyValid, ...contentOf(body, additions?.request) },
      }),
      responses: {
        [success.status]: {
          description: success.description,
          ...(additions && { headers: additions.headers }),
          ...(success.body && contentOf(success.body, additions?.success)),
        },
        ...additions?.responses,
        ...Object.fromEntries(failures),
      },
    };
  }
  return paths;
}

function contentOf({ json: schema }: Schema<unknown>, examples?: JsonSchema): JsonSchema {
  return { content: { "application/json": { schema, ...(examples && { examples }) } } };
}

/** The parameter in the path. */
export function pathParameters({ identifier }: Operation, example?: number): Parameter[] {
  if (identifier === undefined) return [];
  const { name, description } = identifier;
  const parameter = { name, in: "path", required: true, description, schema: int64().json } as const;
  return [{ ...parameter, ...(example !== undefined && { example }) }];
}

/** The schema `ApiError` of one status, restricted to its codes. */
export function errorSchema(ApiError: JsonSchema, status: number, codes: readonly string[]): JsonSchema {
  const restriction = { properties: { code: { enum: codes }, status: { const: status } } };
  return { allOf: [ApiError, restriction] };
}

export function meaningsOf(errors: ErrorTable, codes: readonly string[]): string {
  return codes.map((code) => `\`${code}\`: ${errors[code]?.meaning}`).join("\n\n");
}
