import { useEffect, useRef, useState } from "preact/hooks";
import type { TryItData, TryItOperation } from "../../try-it-data.ts";
import { durationText, useSecondsUntil } from "./countdown.ts";
import { isSendable } from "./field-problem.ts";
import { isSendableKey, type KeyMemory } from "./key.ts";
import { KeyField } from "./key-field.tsx";
import { ParameterTables } from "./parameter-tables.tsx";
import { requestOf } from "./request.ts";
import { RequestView } from "./request-view.tsx";
import { nextCursorOf, type Outcome, retryAtOf, send } from "./response.ts";
import { ResponseView } from "./response-view.tsx";

type Values = Readonly<Record<string, string>>;

interface TryItFormProps {
  readonly data: TryItData;
  readonly operation: TryItOperation;
  readonly memory: KeyMemory;
  readonly onMemoryChange: (memory: KeyMemory) => void;
}

/** Sends requests of one operation from the page that describes it. */
export function TryItForm({ data, operation, memory, onMemoryChange }: TryItFormProps) {
  const [values, setValues] = useState(() => initialValues(operation));
  const { outcome, isRunning, retryIn, run, cancel } = useSending(memory.key);
  const requestWith = (changed: Values) =>
    requestOf({ operation, values: changed, baseUrl: apiUrl(data), key: memory.key });
  const canSend =
    isSendableKey(memory.key) &&
    operation.fields.every((field) => isSendable(field, values[field.name] ?? ""));
  const nextCursor = outcome?.kind === "response" ? nextCursorOf(outcome) : undefined;

  function submit(changed: Values) {
    if (!canSend || isRunning || retryIn > 0) return;
    setValues(changed);
    void run(requestWith(changed));
  }

  return (
    <form
      class="try-it"
      novalidate
      onSubmit={(event) => {
        event.preventDefault();
        submit(values);
      }}
    >
      <div class="try-parameters">
        <KeyField data={data} memory={memory} onChange={onMemoryChange} />
        <ParameterTables
          fields={operation.fields}
          values={values}
          onChange={(name, text) => setValues({ ...values, [name]: text })}
        />
      </div>
      <div class="try-exchange">
        <RequestView request={requestWith(values)} />
        <div class="try-actions">
          <button type="submit" class="primary" aria-disabled={!canSend || isRunning || retryIn > 0}>
            {retryIn > 0 ? `Send again in ${durationText(retryIn)}` : "Send request"}
          </button>
          {isRunning && (
            <button type="button" onClick={cancel}>
              Cancel
            </button>
          )}
          {nextCursor !== undefined && !isRunning && (
            <button type="button" onClick={() => submit({ ...values, cursor: nextCursor })}>
              Next page
            </button>
          )}
          <span class="try-hint">
            {operation.method === "GET" ? "" : `It changes data of ${data.environment}.`}
          </span>
        </div>
        <Result outcome={outcome} isRunning={isRunning} data={data} />
      </div>
    </form>
  );
}

/** Defaults, and values that work for what is required. */
function initialValues({ fields }: TryItOperation): Values {
  return Object.fromEntries(
    fields.map(({ name, isRequired, default: assumed, example }) => [
      name,
      assumed ?? (isRequired ? (example ?? "") : ""),
    ]),
  );
}

function apiUrl({ apiPath }: TryItData): string {
  return new URL(apiPath, document.baseURI).href.replace(/\/$/, "");
}

/** One request at a time. After a 429, none with the same key until `Retry-After` is over: that would be a strike. */
function useSending(key: string) {
  const [outcome, setOutcome] = useState<Outcome>();
  const [running, setRunning] = useState<AbortController>();
  const [wait, setWait] = useState<{ readonly key: string; readonly until: number }>();
  const retryIn = useSecondsUntil(wait?.key === key ? wait.until : undefined);

  async function run(request: Parameters<typeof send>[0]) {
    const controller = new AbortController();
    setRunning(controller);
    setOutcome(undefined);
    const result = await send(request, controller.signal);
    setRunning(undefined);
    setOutcome(result);
    const until = result.kind === "response" ? retryAtOf(result) : undefined;
    if (until !== undefined) setWait({ key, until });
  }

  return { outcome, isRunning: running !== undefined, retryIn, run, cancel: () => running?.abort() };
}

interface ResultProps {
  readonly outcome: Outcome | undefined;
  readonly isRunning: boolean;
  readonly data: TryItData;
}

function Result({ outcome, isRunning, data }: ResultProps) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (outcome !== undefined) element.current?.scrollIntoView({ block: "nearest" });
  }, [outcome]);
  return (
    <div class="try-result" ref={element}>
      <span class="visually-hidden" role="status">
        {isRunning ? "Sending" : announcementOf(outcome)}
      </span>
      {isRunning && <p class="try-hint">Waiting for the response …</p>}
      {outcome !== undefined && (
        <>
          <h3>Response</h3>
          <ResponseView outcome={outcome} data={data} />
        </>
      )}
    </div>
  );
}

function announcementOf(outcome: Outcome | undefined): string {
  if (outcome === undefined) return "";
  return outcome.kind === "response"
    ? `Response ${outcome.status} ${outcome.statusText}`
    : `Request ${outcome.kind}`;
}
