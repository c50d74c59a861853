import { structureOf } from "./openapi.ts";
import type { Server } from "./server.ts";

const HTTP_DATE = /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/;
const ERROR = /^\{"code":"(\w+)","message":"((?:[^"\\]|\\.)+)","status":(\d+)\}$/;
const CREATED_AT =
  /("id":(\d+),"petId":-?\d+,"status":"\w+","createdAt":)"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"/g;
const PROSE = /^(?:GET|HEAD) \/(?:docs|openapi\.json) /;
const ORIGIN = /^https?:\/\/[^/]+/;

/** Seconds until limits reset and bans end. A scenario is over soon after it has begun, so most of them are left. */
const PERIODS = [60, 300, 86_400];
const SLACK_SECONDS = 45;
/** Longer bodies are recorded as their beginning and their hash. */
const MAX_BODY_LENGTH = 3_000;

/**
 * Responses as text in which nothing varies from one run to the next: each value that does is checked and replaced by
 * what it means. One that fails its check stays as it is, and so differs from the record.
 */
export class Normaliser {
  readonly #given = new Map<string, string>();
  /** By order. */
  readonly #createdAt = new Map<string, string>();
  /** Validators of bodies in which times stand. */
  readonly #varyingEtags = new Set<string>();
  /** Of the last body whose length varies. */
  #varyingLength = "";

  constructor(private readonly server: Pick<Server, "now" | "speed">) {}

  /** What the last response that had one gave as its `next` page, the `cursor` of it, or its `etag`. */
  given(name: string): string | undefined {
    return this.#given.get(name);
  }

  normalise(raw: string, request: string): string {
    const headEnd = raw.indexOf("\r\n\r\n");
    if (headEnd === -1) return raw === "" ? "(no response)" : JSON.stringify(raw);
    const lines = raw.slice(0, headEnd).split("\r\n");
    const bytes = Buffer.from(raw.slice(headEnd + 4), "latin1");
    const text = bytes.toString();
    const body = this.#body(text);
    const isHead = request.startsWith("HEAD ");
    const isVarying = body !== text || (isHead && (/^HTTP\/1\.1 [45]/.test(raw) || PROSE.test(request)));
    if (/"createdAt"|^<!doctype html>/.test(text) || PROSE.test(request))
      this.#varyingEtags.add(fieldOf(lines, "ETag"));
    this.#remember(lines);

    const fields = lines.map((line) => {
      if (/[\r\n]/.test(line)) return JSON.stringify(line);
      const [, name = "", value = ""] = /^([^:]+): (.*)$/.exec(line) ?? [];
      if (name !== "Content-Length") return name === "" ? line : `${name}: ${this.#field(name, value)}`;
      if (!isVarying) return line;
      if (!isHead) this.#varyingLength = `${bytes.length}`;
      return value === this.#varyingLength ? "Content-Length: <that of the body>" : line;
    });
    return `${fields.join("\n")}${body === "" ? "" : `\n\n${shortened(body)}`}`;
  }

  #remember(lines: readonly string[]): void {
    const etag = fieldOf(lines, "ETag");
    if (etag !== "") this.#given.set("etag", etag);
    const next = /<([^>]*)>; rel="next"/.exec(fieldOf(lines, "Link"))?.[1];
    if (next === undefined) return;
    this.#given.set("next", next.replace(ORIGIN, ""));
    this.#given.set("cursor", new URL(next).searchParams.get("cursor") ?? "");
  }

  #field(name: string, value: string): string {
    switch (name) {
      case "Date":
        return HTTP_DATE.test(value) && this.#isNow(value) ? "<now>" : value;
      case "X-RateLimit-Reset":
        return this.#period(value, Number(value) - this.server.now() / 1_000) ?? value;
      case "Retry-After":
        return this.#period(value, Number(value)) ?? value;
      case "X-Request-Id":
        return /^[0-9a-f]{8}-[0-9a-z]+$/.test(value) ? "<new>" : value;
      case "Content-Security-Policy":
        return value.replace(/'sha256-[\w+/]{43}='/g, "'sha256-<hash>'");
      case "ETag":
        return this.#varyingEtags.has(value) ? value.replace(/^"[\w+/]{22}"$/, '"<22 characters>"') : value;
      default:
        return value;
    }
  }

  #period(value: string, seconds: number): string | undefined {
    if (!/^[1-9]\d*$/.test(value)) return undefined;
    const slack = Math.min(SLACK_SECONDS * this.server.speed, 59);
    const period = PERIODS.find((period) => seconds > period - slack && seconds <= period + 1);
    return period === undefined ? undefined : `<${period} s from now>`;
  }

  #isNow(time: string): boolean {
    return Math.abs(Date.parse(time) - this.server.now()) < 10_000 * this.server.speed;
  }

  #body(text: string): string {
    if (text.startsWith("<!doctype html>")) {
      return `<!doctype html> … ${/<title>.*<\/title>/.exec(text)} …`;
    }
    if (text.startsWith('{\n  "openapi"')) return structureOf(text);
    return text
      .replace(ERROR, '{"code":"$1","message":"…","status":$3}')
      .replace(CREATED_AT, (all: string, start: string, id: string, time: string) => {
        const first = this.#createdAt.get(id);
        if (first === undefined ? !this.#isNow(time) : first !== time) return all;
        this.#createdAt.set(id, time);
        return `${start}"<now>"`;
      });
  }
}

function fieldOf(lines: readonly string[], name: string): string {
  return lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? "";
}

function shortened(body: string): string {
  if (body.length <= MAX_BODY_LENGTH || body.startsWith("{\n")) return body;
  const hash = new Bun.CryptoHasher("sha256").update(body).digest("hex");
  return `${body.slice(0, 200)}… (${body.length} characters, SHA-256 ${hash})`;
}
