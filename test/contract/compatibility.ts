/*
 * What a client can rely on, read out of an OpenAPI document, and what of it another document breaks. Texts and
 * examples are no promise.
 */

/** The part of JSON Schema that the documents use, without references and texts. */
export interface Schema {
  type?: string;
  format?: string;
  enum?: readonly unknown[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  items?: Schema;
  required?: readonly string[];
  properties?: Record<string, Schema>;
  canBeNull?: boolean;
}

interface Parameter {
  readonly isRequired: boolean;
  schema: Schema;
}

interface Response {
  /** Whether every response has the header, by its name. */
  readonly headers: Record<string, boolean>;
  readonly schema: Schema;
}

interface Operation {
  operationId: string;
  /** The parameters by place and name, such as `query limit`. */
  readonly parameters: Record<string, Parameter>;
  readonly body: Schema;
  /** The responses by status. */
  readonly responses: Record<string, Response>;
}

/** The operations of a document by method and path, such as `GET /pets`. */
export type Contract = Record<string, Operation>;

type Node = { readonly [key: string]: Node };

/** Every response has it, for browsers. Documents since 1.2.0 leave it out. */
const UNDOCUMENTED_HEADER = "X-Content-Type-Options";

const FACTS = ["type", "format", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"];

export function contractOf(document: Node): Contract {
  const deref = (node: Node = {}): Node => {
    const ref: unknown = node["$ref"];
    if (typeof ref !== "string") return node;
    const steps = ref.slice(2).split("/");
    return deref(steps.reduce<Node | undefined>((at, key) => at?.[key], document));
  };
  const list = (node: Node | undefined): Node[] => (Array.isArray(node) ? node.map(deref) : []);

  function schemaOf(given: Node | undefined): Schema {
    const node = deref(given);
    const schema: Schema = {};
    Object.assign(
      schema,
      Object.fromEntries(FACTS.flatMap((fact) => (node[fact] === undefined ? [] : [[fact, node[fact]]]))),
    );
    if (node["enum"]) schema.enum = list(node["enum"]);
    if (node["const"] !== undefined) schema.enum = [node["const"]];
    if (node["items"]) schema.items = schemaOf(node["items"]);
    if (node["required"]) schema.required = list(node["required"]).map(String);
    if (node["properties"]) schema.properties = mapped(node["properties"], schemaOf);
    for (const part of list(node["allOf"])) narrow(schema, schemaOf(part));
    for (const part of list(node["anyOf"])) {
      const alternative = schemaOf(part);
      if (alternative.type === "null") schema.canBeNull = true;
      else Object.assign(schema, alternative);
    }
    return schema;
  }

  const contentOf = (node: Node) => schemaOf(deref(node["content"])["application/json"]?.["schema"]);

  function responseOf(given: Node): Response {
    const node = deref(given);
    const headers = mapped(deref(node["headers"]), (header) => Boolean(deref(header)["required"]));
    delete headers[UNDOCUMENTED_HEADER];
    return { headers, schema: contentOf(node) };
  }

  const contract: Contract = {};
  for (const [path, item] of Object.entries(deref(document["paths"]))) {
    for (const [method, node] of Object.entries(item).filter(
      ([, { responses }]) => responses !== undefined,
    )) {
      const parameters = [...list(item["parameters"]), ...list(node["parameters"])];
      contract[`${method.toUpperCase()} ${path}`] = {
        operationId: String(node["operationId"]),
        parameters: Object.fromEntries(
          parameters.map(({ in: place, name, required, schema }) => [
            `${String(place)} ${String(name)}`,
            { isRequired: Boolean(required), schema: schemaOf(schema) },
          ]),
        ),
        body: contentOf(deref(node["requestBody"])),
        responses: mapped(deref(node["responses"]), responseOf),
      };
    }
  }
  return contract;
}

function mapped<T>(node: Node, map: (each: Node) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(node).map(([name, each]) => [name, map(each)]));
}

/** Adds what a part of an `allOf` says: of a field in both, the values of the part. */
function narrow(schema: Schema, part: Schema): void {
  const properties = { ...schema.properties };
  for (const [name, field] of Object.entries(part.properties ?? {}))
    properties[name] = Object.assign({}, properties[name], field);
  Object.assign(schema, part, { properties });
}

/** Returns a sentence for each promise of the earlier contract that the later one breaks. */
export function incompatibilities(earlier: Contract, later: Contract): string[] {
  const problems: string[] = [];

  const isKept = <T>(at: string, before: Record<string, T>, now: Record<string, T> = {}) =>
    Object.entries(before).flatMap(([name, each]) => {
      const found = now[name];
      if (found === undefined) problems.push(`${at}${name} is gone`);
      return found === undefined ? [] : [{ name, before: each, now: found }];
    });

  /** What neither a request nor a response may lose: types, values and fields. */
  function compare(at: string, before: Schema, now: Schema, next: typeof compareInput): void {
    for (const fact of ["type", "format"] as const)
      if (before[fact] !== undefined && before[fact] !== now[fact])
        problems.push(`${at}: ${fact} ${before[fact]} is now ${now[fact]}`);
    for (const value of before.enum ?? [])
      if (now.enum && !now.enum.includes(value)) problems.push(`${at}: ${String(value)} is gone`);
    for (const field of isKept(`${at}: `, before.properties ?? {}, now.properties))
      next(`${at} ${field.name}`, field.before, field.now);
    if (before.items) next(`${at}[]`, before.items, now.items ?? {});
  }

  /** What was valid in a request stays valid. */
  function compareInput(at: string, before: Schema, now: Schema): void {
    compare(at, before, now, compareInput);
    for (const name of now.required ?? [])
      if (!before.required?.includes(name)) problems.push(`${at}: ${name} is newly required`);
    const isNarrower = (
      bound: "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems",
    ) => {
      const [was, is] = [before[bound], now[bound]];
      if (is === undefined || was === is) return false;
      return was === undefined || (bound.startsWith("min") ? is > was : is < was);
    };
    for (const bound of ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"] as const)
      if (isNarrower(bound)) problems.push(`${at}: ${bound} ${before[bound]} is now ${now[bound]}`);
    if (now.enum && !before.enum) problems.push(`${at} is now one of ${now.enum.join(", ")}`);
  }

  /** What was always in a response stays there. */
  function compareOutput(at: string, before: Schema, now: Schema): void {
    compare(at, before, now, compareOutput);
    for (const name of before.required ?? [])
      if (now.properties?.[name] && !now.required?.includes(name))
        problems.push(`${at}: ${name} can be missing`);
    if (now.canBeNull && !before.canBeNull) problems.push(`${at} can be null`);
  }

  for (const { name, before, now } of isKept("", earlier, later)) {
    if (now.operationId !== before.operationId)
      problems.push(`${name}: operationId ${before.operationId} is now ${now.operationId}`);
    for (const parameter of isKept(`${name} `, before.parameters, now.parameters))
      compareInput(`${name} ${parameter.name}`, parameter.before.schema, parameter.now.schema);
    for (const [parameter, { isRequired }] of Object.entries(now.parameters))
      if (isRequired && !before.parameters[parameter]?.isRequired)
        problems.push(`${name} ${parameter} is newly required`);
    compareInput(`${name} body`, before.body, now.body);
    for (const response of isKept(`${name} `, before.responses, now.responses)) {
      const at = `${name} ${response.name}`;
      for (const header of isKept(`${at} header `, response.before.headers, response.now.headers))
        if (header.before && !header.now) problems.push(`${at} header ${header.name} can be missing`);
      compareOutput(at, response.before.schema, response.now.schema);
    }
  }
  return problems;
}
