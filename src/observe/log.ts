import { printable } from "../text/formatting.ts";
import { LOG_LEVELS, type LogFormat, type LogLevel } from "../domain/constants.ts";
import {
  LOG_EVENTS,
  type LogDetails,
  type LogEvent,
  type LogEventName,
  type LogEventWithoutDetails,
} from "./log-events.ts";

/** One line per event on standard error. */
export interface Log {
  event(name: LogEventWithoutDetails): void;
  event<N extends LogEventName>(name: N, details: LogDetails<N>): void;
}

export interface LogOptions {
  /** By default text if standard error is a terminal, and JSON otherwise. */
  readonly format?: LogFormat | undefined;
  /** The least important level to write. */
  readonly level?: LogLevel | undefined;
  readonly write?: (line: string) => void;
}

type Details = Readonly<Record<string, unknown>>;

/** A longer line would be split by collectors of logs. */
const MAX_DETAILS_LENGTH = 16 * 1024;
const MAX_CAUSES = 8;

/** Logging never throws: an error in it must not keep a request without its response. */
export function createLog({ format, level = "info", write = writeToStandardError }: LogOptions = {}): Log {
  let line: typeof jsonLine | undefined;
  return {
    event(name: LogEventName, details: Details = {}) {
      const event: LogEvent = LOG_EVENTS[name];
      if (LOG_LEVELS.indexOf(event.level) < LOG_LEVELS.indexOf(level)) return;
      try {
        line ??= (format ?? defaultFormat()) === "json" ? jsonLine : textLine;
        write(line(name, event, details));
      } catch {
        // There is no other place to report it.
      }
    },
  };
}

export const silentLog: Log = { event() {} };

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

/** For people: the message comes first, and the stack of an error is below it. */
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

/** Each line of the stack and of its causes, indented. */
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
