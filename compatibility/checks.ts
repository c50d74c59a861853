/** One thing that a tool has to do. It throws if the tool finds a problem. */
export interface Check {
  readonly name: string;
  /** Resolves with what is worth knowing about a success. */
  run(): Promise<string>;
}

/** Runs the checks one after the other and prints a line for each. Gives the exit code. */
export async function runChecks(checks: readonly Check[]): Promise<number> {
  const width = Math.max(...checks.map(({ name }) => name.length));
  let failures = 0;
  for (const { name, run } of checks) {
    const line = await run().then(
      (note) => `passed  ${name.padEnd(width)}  ${note}`,
      (error: unknown) => {
        failures++;
        return `FAILED  ${name}: ${error instanceof Error ? error.message : String(error)}`;
      },
    );
    process.stdout.write(`${line.trimEnd()}\n`);
  }
  process.stdout.write(`${checks.length - failures} of ${checks.length} checks passed.\n`);
  return failures === 0 ? 0 : 1;
}

/** Compares values as JSON. */
export function expectEqual(what: string, actual: unknown, expected: unknown): void {
  const [found, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (found !== wanted) throw new Error(`${what} is ${found}, expected ${wanted}`);
}
