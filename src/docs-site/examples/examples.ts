import type { OperationId } from "../../domain/usage-history.ts";
import { curlCommand } from "./curl.ts";
import { type Example, type ExampleContext, render } from "./example.ts";
import { fetchProgram } from "./fetch.ts";
import { pythonProgram } from "./python.ts";
import { EXAMPLE_REQUESTS } from "./requests.ts";
import { typescriptProgram } from "./typescript.ts";

/** The examples of an operation: one per language, in the order of EXAMPLE_LANGUAGES. */
export function examplesOf(operationId: OperationId, context: ExampleContext): readonly Example[] {
  const request = EXAMPLE_REQUESTS[operationId];
  return render(
    {
      curl: () => curlCommand(request, context),
      typescript: () => typescriptProgram(operationId, context),
      fetch: () => fetchProgram(request, context),
      python: () => pythonProgram(request, context),
    },
    context,
  );
}
