/**
 * The schemas of the bodies of an operation that have no name, of which a generator of clients makes a nameless type.
 * `operation` is a node of an OpenAPI document.
 */
export function unnamedBodies(operation: unknown): unknown[] {
  const { requestBody, responses = {} } = Object(operation);
  const bodies = [
    requestBody,
    ...Object.entries(responses).flatMap(([status, each]) => (status < "3" ? [each] : [])),
  ];
  const schemas = bodies.flatMap((body) => Object(Object(body).content)["application/json"]?.schema ?? []);
  return schemas.filter((schema) => schema.$ref === undefined);
}
