import { render } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { shortDuration } from "../../api/formatting.ts";
import { readStored, writeStored } from "../../console/theme.ts";
import { EXAMPLE_LANGUAGES, type TryItData } from "../page-data.ts";
import { programsOf } from "./programs.ts";
import {
  type ApiRequest,
  initialValues,
  isSendable,
  isSendableKey,
  requestOf,
  type Values,
} from "./request.ts";
import { CodeBlock, ResponseView, useSecondsUntil } from "./response-view.tsx";
import { nextCursorOf, type CallOutcome, retryAtOf, send } from "./response.ts";
import { KeyField, type KeyMemory, ParameterTables } from "./try-it-fields.tsx";

/** Where this tab keeps the API key, if the person asks to remember it. */
const KEY = "petstore-docs-key";

/** Puts a form into the section that can send requests; see `TryItData`. */
export function startTryIt(): void {
  const section = document.querySelector("[data-try-it]");
  const text = document.querySelector("#try-it-data")?.textContent;
  if (section === null || text === undefined) return;
  // The form shows the request in the place of the example, and the response in the place of its own.
  const example = section.parentElement?.querySelector(".aside");
  const sample = example?.querySelector(".aside > .code") ?? undefined;
  example?.remove();
  section.replaceChildren();
  // The server wrote it for this script.
  render(<TryItForm data={JSON.parse(text)} sample={sample} />, section);
  // The browser has already scrolled to the row that the address names, which was replaced since.
  const id = location.hash.slice(1);
  if (id !== "") document.querySelector(`#${CSS.escape(id)}`)?.scrollIntoView();
}

/** The key is in the memory of the page, and of the tab if the person wants it. */
function useKey() {
  const [memory, setMemory] = useState<KeyMemory>(() => {
    const key = readStored("sessionStorage", KEY);
    return { key: key ?? "", isRemembered: key !== null };
  });
  function change({ key, isRemembered }: KeyMemory) {
    const isAllowed = writeStored("sessionStorage", KEY, isRemembered ? key : null);
    setMemory({ key, isRemembered: isRemembered && isAllowed });
  }
  return [memory, change] as const;
}

/** Sends requests of one operation from the page that describes it. */
function TryItForm({ data, sample }: { readonly data: TryItData; readonly sample?: Element | undefined }) {
  const { operation } = data;
  const [memory, changeMemory] = useKey();
  const [values, setValues] = useState(() => initialValues(operation.fields));
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
        <KeyField data={data} memory={memory} onChange={changeMemory} />
        <ParameterTables
          fields={operation.fields}
          values={values}
          onChange={(name, text) => setValues({ ...values, [name]: text })}
        />
      </div>
      <div class="try-exchange">
        <RequestView data={data} values={values} request={requestWith(values)} />
        <div class="try-actions">
          <button type="submit" class="button primary" aria-disabled={!canSend || isRunning || retryIn > 0}>
            {retryIn > 0 ? `Send again in ${shortDuration(1_000 * retryIn)}` : "Send request"}
          </button>
          {isRunning && (
            <button type="button" class="button" onClick={cancel}>
              Cancel
            </button>
          )}
          {nextCursor !== undefined && !isRunning && (
            <button type="button" class="button" onClick={() => submit({ ...values, cursor: nextCursor })}>
              Next page
            </button>
          )}
          <span class="note">
            {operation.method === "GET" ? "" : `This changes data in ${data.environment}.`}
          </span>
        </div>
        <Result outcome={outcome} isRunning={isRunning} data={data} sample={sample} />
      </div>
    </form>
  );
}

function apiUrl({ apiPath }: TryItData): string {
  return new URL(apiPath, document.baseURI).href.replace(/\/$/, "");
}

/** One request at a time. After a 429, none with the same key until `Retry-After` is over: that would be a strike. */
function useSending(key: string) {
  const [outcome, setOutcome] = useState<CallOutcome>();
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
  readonly outcome: CallOutcome | undefined;
  readonly isRunning: boolean;
  readonly data: TryItData;
  /** What the API responds with, until it has responded. */
  readonly sample: Element | undefined;
}

function Result({ outcome, isRunning, data, sample }: ResultProps) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (outcome !== undefined) element.current?.scrollIntoView({ block: "nearest" });
  }, [outcome]);
  return (
    <div class="try-result" ref={element}>
      <span class="visually-hidden" role="status">
        {isRunning ? "Sending" : announcementOf(outcome)}
      </span>
      {isRunning && <p class="note">Waiting for the response …</p>}
      {outcome === undefined && !isRunning && sample && <div ref={(element) => element?.append(sample)} />}
      {outcome !== undefined && (
        <>
          <h3>Response</h3>
          <ResponseView outcome={outcome} data={data} />
        </>
      )}
    </div>
  );
}

function announcementOf(outcome: CallOutcome | undefined): string {
  if (outcome === undefined) return "";
  return outcome.kind === "response"
    ? `Response ${outcome.status} ${outcome.statusText}`
    : `Request ${outcome.kind}`;
}

interface RequestViewProps {
  readonly data: TryItData;
  readonly values: Values;
  readonly request: ApiRequest;
}

/** The request as programs, while it is edited. Its tabs are those of the examples. */
function RequestView({ data: { operation, baseUrl, keyPrefix }, values, request }: RequestViewProps) {
  const key = `${keyPrefix}YOUR_KEY`;
  const programs = programsOf({ request, operation, values, baseUrl, key });
  const name = useId();
  return (
    <div class="try-request">
      <fieldset class="example">
        <legend class="visually-hidden">Language of the request</legend>
        <div class="tabs">
          {programs.map(({ language }, index) => (
            <label key={language}>
              <input type="radio" name={name} value={language} defaultChecked={index === 0} />
              {EXAMPLE_LANGUAGES[language].label}
            </label>
          ))}
        </div>
        {programs.map(({ language, code }) => (
          <CodeBlock
            key={language}
            label="Request as sent"
            language={language}
            code={code}
            syntax={EXAMPLE_LANGUAGES[language].syntax}
          />
        ))}
      </fieldset>
      <p class="note">
        The request as it is sent, with <code>{key}</code> instead of your key.
      </p>
    </div>
  );
}
