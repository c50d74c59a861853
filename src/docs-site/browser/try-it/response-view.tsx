import type { TryItData } from "../../try-it-data.ts";
import { CodeBlock, CodeSpans } from "./code.tsx";
import { durationText, useSecondsUntil } from "./countdown.ts";
import { indentedJson } from "./json-text.ts";
import {
  apiErrorOf,
  type ApiResponse,
  type Outcome,
  rateLimitOf,
  type RateLimitWindow,
  retryAtOf,
} from "./response.ts";

interface ResponseViewProps {
  readonly outcome: Outcome;
  readonly data: Pick<TryItData, "headers" | "errorCodesPath">;
}

/** What came back: status and time, the rate limit, headers, and the body as it was sent. */
export function ResponseView({ outcome, data }: ResponseViewProps) {
  if (outcome.kind === "cancelled")
    return <p class="try-failure">Cancelled. The server may have executed the request all the same.</p>;
  if (outcome.kind === "unreachable")
    return (
      <p class="try-failure">
        No response. The server has stopped, or this browser cannot reach it. Start it or check the network,
        then send the request again.
      </p>
    );
  const window = rateLimitOf(outcome);
  return (
    <>
      <StatusLine response={outcome} />
      <Explanation response={outcome} data={data} />
      {window && <RateLimitGauge window={window} isBanned={isBan(outcome)} />}
      <HeaderList response={outcome} explanations={data.headers} />
      <Body response={outcome} />
    </>
  );
}

/** Never colour alone: each meaning has a shape. */
const SYMBOLS = { ok: "●", limited: "▲", error: "■", none: "○" } as const;

function meaningOf(response: ApiResponse): keyof typeof SYMBOLS {
  const { status } = response;
  if (status >= 200 && status < 300) return "ok";
  if (status < 400) return "none";
  return status === 429 && !isBan(response) ? "limited" : "error";
}

function isBan({ status, body }: ApiResponse): boolean {
  return status === 429 && apiErrorOf(body)?.code === "key_banned";
}

function StatusLine({ response }: { readonly response: ApiResponse }) {
  const { status, statusText, durationMs } = response;
  const meaning = meaningOf(response);
  return (
    <p class="try-status">
      <span class="try-badge" data-meaning={meaning}>
        <span aria-hidden="true">{SYMBOLS[meaning]}</span> {status} {statusText}
      </span>{" "}
      <span class="try-time">{durationMs < 10 ? durationMs.toFixed(1) : Math.round(durationMs)} ms</span>
    </p>
  );
}

interface ExplanationProps {
  readonly response: ApiResponse;
  readonly data: Pick<TryItData, "errorCodesPath">;
}

/** What an error means, and when to try again. */
function Explanation({ response, data: { errorCodesPath } }: ExplanationProps) {
  const retryIn = useSecondsUntil(retryAtOf(response));
  const error = response.status >= 400 ? apiErrorOf(response.body) : undefined;
  if (response.status === 304)
    return <p class="try-explanation">Not modified: you have this version already, so it has no body.</p>;
  if (error === undefined) return null;
  return (
    <div class="try-explanation">
      <p>{error.message}</p>
      <p>
        {error.code === "missing_api_key" && "Enter your API key above. "}
        {retryIn > 0 && `You can send again in ${durationText(retryIn)}. `}
        <a href={`${errorCodesPath}#${encodeURIComponent(error.code)}`}>What {error.code} means</a>
      </p>
    </div>
  );
}

interface RateLimitGaugeProps {
  readonly window: RateLimitWindow;
  readonly isBanned: boolean;
}

/** How much of the window is left. Once it has closed, all of the next one is. */
function RateLimitGauge({ window: { limit, remaining, closesAt }, isBanned }: RateLimitGaugeProps) {
  const seconds = useSecondsUntil(closesAt);
  const left = seconds === 0 ? limit : remaining;
  const end = isBanned ? "the ban ends" : "the window closes";
  return (
    <div class="try-gauge" data-empty={left === 0 ? "" : undefined}>
      <span class="try-gauge-bar" aria-hidden="true">
        <span style={{ width: `${Math.min(100, (left / limit) * 100)}%` }} />
      </span>
      <span>
        {grouped(left)} of {grouped(limit)} requests left;{" "}
        {seconds > 0 ? `${end} in ${durationText(seconds)}` : "the next request opens a new window"}
      </span>
    </div>
  );
}

/** `1,000`. */
function grouped(number: number): string {
  return number.toLocaleString("en");
}

interface HeaderListProps {
  readonly response: ApiResponse;
  readonly explanations: TryItData["headers"];
}

function HeaderList({ response: { headers }, explanations }: HeaderListProps) {
  const lines = [...headers];
  return (
    <details class="try-headers">
      <summary>{lines.length} headers</summary>
      <dl>
        {lines.map(([name, value]) => {
          // A proxy may send a header of any name, such as "constructor".
          const explanation = Object.hasOwn(explanations, name) ? explanations[name] : undefined;
          return (
            <div key={name}>
              <dt>
                <code>{canonicalName(name)}</code>
              </dt>
              <dd>
                <code>{value}</code>
                {explanation !== undefined && (
                  <div class="try-hint">
                    <CodeSpans text={explanation} />
                  </div>
                )}
              </dd>
            </div>
          );
        })}
      </dl>
    </details>
  );
}

const IRREGULAR_NAMES = new Map(
  ["ETag", "WWW-Authenticate", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"].map(
    (name) => [name.toLowerCase(), name],
  ),
);

/** Browsers give names in lower case. */
function canonicalName(name: string): string {
  return IRREGULAR_NAMES.get(name) ?? name.replace(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase());
}

/** Text only: whatever the server sends, none of it becomes markup. */
function Body({ response: { body } }: { readonly response: ApiResponse }) {
  if (body === "") return <p class="try-hint">The response has no body.</p>;
  const json = indentedJson(body);
  const { code, syntax, title } =
    json === undefined
      ? ({ code: body, syntax: "text", title: "Body" } as const)
      : ({ code: json, syntax: "json", title: "Body, indented" } as const);
  return <CodeBlock label="Response body" title={title} code={code} syntax={syntax} />;
}
