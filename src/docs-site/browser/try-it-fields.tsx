import { useId, useState } from "preact/hooks";
import { FIELD_GROUP_TITLES, type TryItData, type TryItField } from "../page-data.ts";
import { cleanKey, keyProblem, fieldProblem } from "./request.ts";
import { CodeBlock, CodeSpans } from "./response-view.tsx";

/** The API key that requests carry: in the memory of the page, and of the tab if it is remembered. */
export interface KeyMemory {
  readonly key: string;
  readonly isRemembered: boolean;
}

interface KeyFieldProps {
  readonly data: TryItData;
  readonly memory: KeyMemory;
  readonly onChange: (memory: KeyMemory) => void;
}

/** The API key. A password field, so that it is not on the screen unless asked for. */
export function KeyField({ data, memory, onChange }: KeyFieldProps) {
  const id = useId();
  const [isShown, setShown] = useState(false);
  const { key, isRemembered } = memory;
  const problem = keyProblem(key, data);
  return (
    <div class="try-key">
      <label for={id}>API key</label>
      <div class="try-input">
        <input
          id={id}
          {...(isShown ? ({ type: "text" } as const) : ({ type: "password" } as const))}
          value={key}
          placeholder={`${data.keyPrefix}…`}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          aria-describedby={`${id}-hint`}
          aria-invalid={problem !== undefined}
          onInput={(event) => onChange({ key: cleanKey(event.currentTarget.value), isRemembered })}
        />
        <button type="button" class="button" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
          {isShown ? "Hide" : "Show"}
        </button>
      </div>
      <div class="note" id={`${id}-hint`}>
        {problem === undefined ? (
          "It stays in this page and is sent only to this server."
        ) : (
          <span class="try-problem">{problem}</span>
        )}
      </div>
      <label class="try-check">
        <input
          type="checkbox"
          checked={isRemembered}
          onChange={(event) => onChange({ key, isRemembered: event.currentTarget.checked })}
        />
        Remember it on other pages until this tab is closed
      </label>
      {key === "" && <KeyHelp data={data} />}
    </div>
  );
}

function KeyHelp({
  data: { environment, keyPrefix, command, authenticationPath },
}: {
  readonly data: TryItData;
}) {
  const flag = environment === "production" ? "" : ` --env ${environment}`;
  return (
    <details class="try-help">
      <summary>Get a key</summary>
      <p>
        Ask whoever runs this server. A key of {environment} begins with <code>{keyPrefix}</code>; see{" "}
        <a href={authenticationPath}>Authentication</a>.
      </p>
      <p>
        If you run it yourself: on its first start it printed a key, or wrote one to{" "}
        <code>{environment}-first-key</code> in its data directory. This command creates another, even while
        the server is running:
      </p>
      <CodeBlock
        label="Command"
        title="Shell"
        code={`${command} keys create --name "my key" --plan free${flag}`}
        syntax="sh"
      />
    </details>
  );
}

interface ParameterTablesProps {
  readonly fields: readonly TryItField[];
  readonly values: Readonly<Record<string, string>>;
  readonly onChange: (name: string, text: string) => void;
}

/** The tables of parameters, each row with its input. */
export function ParameterTables({ fields, values, onChange }: ParameterTablesProps) {
  const groups = Map.groupBy(fields, (field) => field.in);
  return (
    <>
      {[...groups].map(([location, rows]) => (
        <div class="try-fields" role="group" aria-label={FIELD_GROUP_TITLES[location]} key={location}>
          <h3 class="try-group">{FIELD_GROUP_TITLES[location]}</h3>
          {rows.map((field) => (
            <FieldRow
              key={field.name}
              field={field}
              text={values[field.name] ?? ""}
              onChange={(text) => onChange(field.name, text)}
            />
          ))}
        </div>
      ))}
    </>
  );
}

interface FieldRowProps {
  readonly field: TryItField;
  readonly text: string;
  readonly onChange: (text: string) => void;
}

function FieldRow({ field, text, onChange }: FieldRowProps) {
  const id = useId();
  const problem = fieldProblem(field, text);
  const { name, anchor, isRequired, description, constraint, bounds } = field;
  return (
    <div class="try-field" id={anchor}>
      <div class="try-about">
        <label for={id}>
          <code>{name}</code>
        </label>
        {isRequired && <span class="required"> required</span>}
        <span class="type">{constraint}</span>
        <div class="note" id={`${id}-description`}>
          <CodeSpans text={description} />
          {bounds.map((bound) => (
            <span class="bound" key={bound}>
              <CodeSpans text={bound} />
            </span>
          ))}
        </div>
      </div>
      <div class="try-value">
        <FieldInput field={field} text={text} id={id} isInvalid={problem !== undefined} onChange={onChange} />
        <div class="try-problem" id={`${id}-problem`}>
          {problem !== undefined && `${name} ${problem}.`}
        </div>
      </div>
    </div>
  );
}

interface FieldInputProps extends FieldRowProps {
  readonly id: string;
  readonly isInvalid: boolean;
}

function FieldInput({ field, text, onChange, id, isInvalid }: FieldInputProps) {
  const { name, type, values, isRequired, default: assumed } = field;
  const attributes = {
    id,
    value: text,
    "aria-describedby": `${id}-description ${id}-problem`,
    "aria-invalid": isInvalid,
    "aria-required": isRequired,
  };
  if (values !== undefined) {
    return (
      <select {...attributes} onChange={(event) => onChange(event.currentTarget.value)}>
        {(!isRequired || text === "") && <option value="">not sent</option>}
        {values.map((value) => (
          <option key={value}>{value}</option>
        ))}
      </select>
    );
  }
  const placeholder = assumed === undefined ? "not sent" : `not sent: ${assumed}`;
  return (
    <div class="try-input">
      <input
        {...attributes}
        type="text"
        inputMode={type === "int64" || type === "integer" ? "numeric" : "text"}
        placeholder={isRequired ? "" : placeholder}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      {name === "Idempotency-Key" && (
        <button
          type="button"
          class="button"
          aria-label="Generate an Idempotency-Key"
          onClick={() => onChange(randomKey())}
        >
          Generate
        </button>
      )}
    </div>
  );
}

/** `crypto.randomUUID` exists on pages with HTTPS alone. */
function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}
