import type { Operation } from "./api.ts";
import type { ErrorTable } from "./errors.ts";
import { int64, type JsonSchema, type Schema } from "./schema.ts";

/** Schemas in `components`: they are references wherever they are used. */
export class NamedSchemas {
  readonly #named: Readonly<Record<string, Schema<unknown>>>;
  readonly #names: ReadonlyMap<unknown, string>;

  constructor(named: Readonly<Record<string, Schema<unknown>>>) {
    this.#named = named;
    this.#names = new Map(Object.entries(named).map(([name, { json }]) => [json, name]));
  }

  components(): JsonSchema {
    const entries = Object.entries(this.#named);
    return Object.fromEntries(entries.map(([name, { json }]) => [name, this.#withRefs(json, true)]));
  }

  /** A reference if the schema has a name. */
  use({ json }: Schema<unknown>): JsonSchema {
    return this.#withRefs(json) as JsonSchema;
  }

  content(schema: Schema<unknown>, examples?: JsonSchema): JsonSchema {
    return { content: { "application/json": { schema: this.use(schema), ...(examples && { examples }) } } };
  }

  #withRefs(schema: unknown, isRoot = false): unknown {
    if (Array.isArray(schema)) return schema.map((item) => this.#withRefs(item));
    if (typeof schema !== "object" || schema === null) return schema;
    const name = isRoot ? undefined : this.#names.get(schema);
    if (name !== undefined) return schemaRef(name);
    return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, this.#withRefs(value)]));
  }
}

function schemaRef(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

type CodesOf<O extends Operation> = NonNullable<O["errors"]>;

/** What an API adds to what its table says. */
interface OpenApiOptions<Id extends string, O extends Operation> {
  readonly schemas: NamedSchemas;
  readonly parametersOf: (operation: O) => readonly JsonSchema[];
  readonly requestExamples?: (id: Id) => JsonSchema | undefined;
  /** Headers and examples of the success. */
  readonly success?: (id: Id, operation: O) => { headers: JsonSchema; examples: JsonSchema };
  /** Responses that are neither the success nor an error, such as 304. */
  readonly moreResponses?: (operation: O) => Readonly<Record<string, JsonSchema>>;
  readonly errorResponse: (status: number, codes: CodesOf<O>, operation: O) => JsonSchema;
  /** All codes of an operation. */
  readonly errorsOf: (operation: O) => CodesOf<O>;
  /** `deprecated`, and `security` where it is not that of the document. */
  readonly flags?: (operation: O) => JsonSchema;
}

interface Table<Id extends string, O extends Operation> {
  readonly errors: ErrorTable;
  readonly operations: Readonly<Record<Id, O>>;
}

/** `paths` of an OpenAPI 3.1 document. */
export function openApiPaths<Id extends string, O extends Operation>(
  { errors, operations }: Table<Id, O>,
  options: OpenApiOptions<Id, O>,
): JsonSchema {
  const { schemas, errorResponse } = options;
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const [id, operation] of Object.entries(operations) as [Id, O][]) {
    const { method, path, tag, summary, description, body, success } = operation;
    const parameters = options.parametersOf(operation);
    const { headers, examples } = options.success?.(id, operation) ?? {};
    (paths[path] ??= {})[method.toLowerCase()] = {
      operationId: id,
      tags: [tag],
      summary,
      description,
      ...options.flags?.(operation),
      ...(parameters.length > 0 && { parameters }),
      ...(body && {
        requestBody: {
          required: !body.isEmptyValid,
          ...schemas.content(body, options.requestExamples?.(id)),
        },
      }),
      responses: {
        [success.status]: {
          description: success.description,
          ...(headers && { headers }),
          ...(success.body && schemas.content(success.body, examples)),
        },
        ...options.moreResponses?.(operation),
        ...Object.fromEntries(
          byStatus(errors, options.errorsOf(operation)).map(([status, group]) => [
            status,
            errorResponse(status, group, operation),
          ]),
        ),
      },
    };
  }
  return paths;
}

/** The parameter in the path. */
export function pathParameters({ identifier }: Operation, more: JsonSchema = {}): JsonSchema[] {
  if (identifier === undefined) return [];
  const { name, description } = identifier;
  return [{ name, in: "path", required: true, description, schema: int64().json, ...more }];
}

/** The ApiError of one status, restricted to its codes. */
export function errorSchema(status: number, codes: readonly string[]): JsonSchema {
  const restriction = { properties: { code: { enum: codes }, status: { const: status } } };
  return { allOf: [schemaRef("ApiError"), restriction] };
}

export function meaningsOf(errors: ErrorTable, codes: readonly string[]): string {
  return codes.map((code) => `\`${code}\`: ${errors[code]?.meaning}`).join("\n\n");
}

export function byStatus<C extends string>(errors: ErrorTable, codes: readonly C[]): [number, C[]][] {
  return [...Map.groupBy(codes, (code) => errors[code]?.status ?? 500)];
}
