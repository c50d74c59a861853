import { printable } from "../text/formatting.ts";
import { LOG_LEVELS, type LogFormat, type LogLevel } from "../domain/logging.ts";
import {
  LOG_EVENTS,
  type LogDetails,
  type LogEvent,
  type LogEventName,
  type LogEventWithoutDetails,
} from "./log-events.ts";

/** Writes one line per event to standard error. */
export interface Log {
  event(name: LogEventWithoutDetails): void;
  event<N extends LogEventName>(name: N, details: LogDetails<N>): void;
  /** The number of lines so far. */
  readonly lines: Readonly<Record<LogLevel, number>>;
}

export interface LogOptions {
  /** The format of lines. The default is text if standard error is a terminal, and JSON otherwise. */
  readonly format?: LogFormat | undefined;
  /** The least important level that is written. */
  readonly level?: LogLevel | undefined;
  readonly write?: (line: string) => void;
}

type Details = Readonly<Record<string, unknown>>;

/** The longest details of a line. Log collectors would split a longer line. */
const MAX_DETAILS_LENGTH = 16 * 1024;
const MAX_CAUSES = 8;

/** Creates the log. Logging never throws, because every request must get its response. */
export function createLog({ format, level = "info", write = writeToStandardError }: LogOptions = {}): Log {
  let line: typeof jsonLine | undefined;
  const lines = { info: 0, warn: 0, error: 0 };
  return {
    lines,
    event(name: LogEventName, details: Details = {}) {
      const event: LogEvent = LOG_EVENTS[name];
      if (LOG_LEVELS.indexOf(event.level) < LOG_LEVELS.indexOf(level)) return;
      lines[event.level]++;
      try {
        line ??= (format ?? defaultFormat()) === "json" ? jsonLine : textLine;
        write(line(name, event, details));
      } catch {
        // An error of the log itself has no other place to be reported.
      }
    },
  };
}

export const silentLog: Log = { event() {}, lines: { info: 0, warn: 0, error: 0 } };

function writeToStandardError(line: string): void {
  process.stderr.write(line);
}

function defaultFormat(): LogFormat {
  return process.stderr.isTTY ? "text" : "json";
}

function jsonLine(name: LogEventName, { level, message }: LogEvent, details: Details): string {
  const time = new Date().toISOString();
  return `${toJson({ time, level, event: name, message, ...details })}\n`;
}

function toJson(fields: Details): string {
  const { time, level, event, message } = fields;
  try {
    const text = JSON.stringify(fields, replacer());
    if (text.length <= MAX_DETAILS_LENGTH) return text;
    return JSON.stringify({ time, level, event, message, cut: text.slice(0, MAX_DETAILS_LENGTH / 2) });
  } catch (error) {
    return JSON.stringify({ time, level, event, message, unprintable: String(error) });
  }
}

/** Formats a line for people: the message comes first, and the stack of an error follows on separate lines. */
function textLine(name: LogEventName, { level, message }: LogEvent, details: Details): string {
  return `${new Date().toISOString()} ${level.padEnd(5)} ${message} [${name}]${textDetails(details)}\n`;
}

function textDetails(details: Details): string {
  try {
    const fields = Object.entries(details).map(([field, value]) => ` ${field}=${textOf(value)}`);
    const stacks = Object.values(details).map((value) => (value instanceof Error ? stackOf(value) : ""));
    return cut(fields.join("")) + cut(stacks.join(""));
  } catch (error) {
    return ` unprintable=${textOf(String(error))}`;
  }
}

function textOf(value: unknown): string {
  if (value instanceof Error) return textOf(`${value.name}: ${value.message}`);
  if (typeof value === "string" && PLAIN.test(value)) return value;
  return printable(JSON.stringify(value, replacer()) ?? "none");
}

const PLAIN = /^[\w./:@+,-]+$/;

/** The stack of an error and of its causes, each line indented. */
function stackOf(error: Error): string {
  let text = "";
  let current: unknown = error;
  for (let depth = 0; current instanceof Error && depth <= MAX_CAUSES; depth++) {
    const title = depth === 0 ? "" : `\n    Caused by ${current.name}: ${printable(current.message)}`;
    const frames = (current.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
    text += title + frames.map((frame) => `\n    ${printable(frame.trim())}`).join("");
    current = current.cause;
  }
  return text;
}

function cut(text: string): string {
  return text.length <= MAX_DETAILS_LENGTH ? text : `${text.slice(0, MAX_DETAILS_LENGTH)}…`;
}

/** Replaces errors, bigints and cycles, which JSON lacks. The first few errors of a chain of causes are written. */
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
