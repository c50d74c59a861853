/** One line an event, on standard error: time, level, what happened, and the details as JSON. */
export interface Log {
  info(event: string, details?: Details): void;
  warn(event: string, details?: Details): void;
  error(event: string, details?: Details): void;
}

type Details = Readonly<Record<string, unknown>>;

export function createLog(write: (line: string) => void = (line) => process.stderr.write(line)): Log {
  const at = (level: string) => (event: string, details?: Details) =>
    write(
      `${new Date().toISOString()} ${level} ${event}${details ? ` ${JSON.stringify(details, plainly)}` : ""}\n`,
    );
  return { info: at("info"), warn: at("warn"), error: at("error") };
}

export const silentLog: Log = { info() {}, warn() {}, error() {} };

/** Errors with their causes, which JSON would print as {}. */
function plainly(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (!(value instanceof Error)) return value;
  return { name: value.name, message: value.message, stack: value.stack, cause: value.cause };
}
