import { isCloseToLimit } from "../../domain/rate-limit.ts";
import { latency, shortDuration } from "../../text/durations.ts";
import { grouped } from "../../text/formatting.ts";
import { useEffect, useState } from "preact/hooks";
import { type Meaning, SYMBOLS } from "../../pages/meanings.ts";
import { highlight } from "../highlight.ts";
import { ERROR_CODES_PATH, type TryItData } from "../page-data.ts";
import { addCopyButtons, urlOf } from "./page-controls.ts";
import { errorBody } from "../../client/json.ts";
import { type ApiResponse, type CallOutcome, indentedJson, retryAtOf, windowOf } from "./response.ts";

interface ReceivedProps {
  readonly response: ApiResponse;
}

interface ResponseViewProps extends Pick<TryItData, "headers"> {
  readonly outcome: CallOutcome;
}

/** What came back: status and time, the rate limit, headers, and the body as it was sent. */
export function ResponseView({ outcome, headers }: ResponseViewProps) {
  if (outcome.kind === "cancelled")
    return <p class="try-failure">Cancelled. The server may still have executed the request.</p>;
  if (outcome.kind === "unreachable")
    return (
      <p class="try-failure">
        No response: the server is down, or this browser cannot reach it. Check both, then send the request
        again.
      </p>
    );
  return (
    <>
      <StatusLine response={outcome} />
      <Explanation response={outcome} />
      <RateLimitGauge response={outcome} />
      <HeaderList received={outcome.headers} headers={headers} />
      <Body response={outcome} />
    </>
  );
}

function meaningOf(response: ApiResponse): Meaning {
  const { status } = response;
  if (status >= 200 && status < 300) return "ok";
  if (status < 400) return "muted";
  return status === 429 && !isBan(response) ? "limited" : "error";
}

function isBan({ status, body }: ApiResponse): boolean {
  return status === 429 && errorBody(body).code === "key_banned";
}

function StatusLine({ response }: ReceivedProps) {
  const { status, statusText, durationMs } = response;
  const meaning = meaningOf(response);
  return (
    <p class="try-status">
      <span class={`try-badge tone-${meaning}`}>
        <span aria-hidden="true">{SYMBOLS[meaning]}</span> {status} {statusText}
      </span>{" "}
      <span class="note">{latency(durationMs)}</span>
    </p>
  );
}

/** What an error means, and when to try again. */
function Explanation({ response }: ReceivedProps) {
  const retryIn = useSecondsUntil(retryAtOf(response));
  const { code, message } = errorBody(response.body);
  if (response.status === 304)
    return <p class="try-explanation">Not modified: you have this version already, so it has no body.</p>;
  if (response.status < 400 || code === undefined) return null;
  return (
    <div class="try-explanation">
      <p>{message}</p>
      <p>
        {code === "missing_api_key" && "Enter your API key above. "}
        {retryIn > 0 && `You can send again in ${shortDuration(1_000 * retryIn)}. `}
        <a href={urlOf(`${ERROR_CODES_PATH}#${encodeURIComponent(code)}`)}>What {code} means</a>
      </p>
    </div>
  );
}

/** How much of the window is used. Once it has closed, nothing of the next one is. */
function RateLimitGauge({ response }: ReceivedProps) {
  const window = windowOf(response);
  const seconds = useSecondsUntil(window?.closesAt);
  if (window === undefined) return null;
  const { limit, remaining } = window;
  const used = seconds === 0 ? 0 : limit - remaining;
  const end = isBan(response) ? "The ban ends" : "The window closes";
  return (
    <div class={`try-gauge ${isCloseToLimit(used, limit) ? "tone-limited" : ""}`}>
      <span class="bar" aria-hidden="true">
        <span style={{ width: `${(used / limit) * 100}%` }} />
      </span>
      <span>
        {grouped(used)} of {grouped(limit)} requests used
      </span>
      <span class="note">
        {seconds > 0 ? `${end} in ${shortDuration(1_000 * seconds)}` : "The next request opens a new window"}
      </span>
    </div>
  );
}

function HeaderList({ received, headers }: { readonly received: Headers } & Pick<TryItData, "headers">) {
  const lines = [...received];
  // Browsers have names in lower case.
  const explanations = new Map(Object.entries(headers).map((each) => [each[0].toLowerCase(), each]));
  return (
    <details class="try-headers">
      <summary>{lines.length} headers</summary>
      <dl class="fields">
        {lines.map(([name, value]) => {
          const [shownName, explanation = ""] = explanations.get(name) ?? [name];
          return (
            <div key={name}>
              <dt>
                <code>{shownName}</code>
              </dt>
              <dd>
                <code>{value}</code>
                <div class="note">
                  {explanation.split("`").map((part, i) => (i % 2 ? <code>{part}</code> : part))}
                </div>
              </dd>
            </div>
          );
        })}
      </dl>
    </details>
  );
}

/** The body, shown like the code blocks of the page. Nothing that the server sends becomes markup. */
function Body({ response: { body } }: ReceivedProps) {
  useEffect(addCopyButtons, []);
  if (body === "") return <p class="note">The response has no body.</p>;
  const json = indentedJson(body);
  return (
    <div class="code">
      <div class="code-title">{json === undefined ? "Body" : "Body, indented"}</div>
      <pre tabIndex={0} role="region" aria-label="Response body">
        <code
          dangerouslySetInnerHTML={{ __html: highlight(json ?? body, json === undefined ? "" : "json") }}
        />
      </pre>
    </div>
  );
}

/** Whole seconds until a time on the clock of `performance`, rounded up; 0 without one, or once it has passed. */
export function useSecondsUntil(time = 0): number {
  const [, setTick] = useState(0);
  const seconds = Math.max(0, Math.ceil((time - performance.now()) / 1_000));
  useEffect(() => {
    if (seconds === 0) return undefined;
    const untilNext = time - performance.now() - (seconds - 1) * 1_000;
    const timer = setTimeout(() => setTick((tick) => tick + 1), untilNext);
    return () => clearTimeout(timer);
  });
  return seconds;
}
