/** One line per event on standard error: time, level, event, details as JSON. */
export interface Log {
  info(event: string, details?: Details): void;
  warn(event: string, details?: Details): void;
  error(event: string, details?: Details): void;
}

type Details = Readonly<Record<string, unknown>>;

/** A longer line would be split by collectors of logs. */
const MAX_DETAILS_LENGTH = 16 * 1024;
const MAX_CAUSES = 8;

/** Logging never throws: an error in it must not keep a request without its response. */
export function createLog(write: (line: string) => void = (line) => process.stderr.write(line)): Log {
  const at = (level: string) => (event: string, details?: Details) => {
    try {
      write(`${new Date().toISOString()} ${level} ${event}${details ? ` ${format(details)}` : ""}\n`);
    } catch {
      // There is no other place to report it.
    }
  };
  return { info: at("info"), warn: at("warn"), error: at("error") };
}

export const silentLog: Log = { info() {}, warn() {}, error() {} };

function format(details: Details): string {
  try {
    const text = JSON.stringify(details, replacer());
    return text.length <= MAX_DETAILS_LENGTH
      ? text
      : JSON.stringify({ cut: text.slice(0, MAX_DETAILS_LENGTH) });
  } catch (error) {
    return JSON.stringify({ unprintable: String(error) });
  }
}

/** JSON has no errors, no bigints and no cycles. Of a chain of causes, the first few are written. */
function replacer(): (key: string, value: unknown) => unknown {
  const seen = new Set<object>();
  let causes = 0;
  return (_key, value) => {
    if (typeof value === "bigint") return String(value);
    if (typeof value !== "object" || value === null) return value;
    if (seen.has(value)) return "(seen above)";
    seen.add(value);
    if (!(value instanceof Error)) return value;
    const { name, message, stack, cause } = value;
    return { name, message, stack, cause: ++causes <= MAX_CAUSES ? cause : undefined };
  };
}
