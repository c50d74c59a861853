import { useId } from "preact/hooks";
import { FIELD_GROUP_TITLES, type TryItField } from "../../try-it-data.ts";
import { CodeSpans } from "./code.tsx";
import { problemOf } from "./field-problem.ts";

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
  const problem = problemOf(field, text);
  const { name, anchor, isRequired, description, constraint } = field;
  return (
    <div class="try-field" id={anchor}>
      <div class="try-about">
        <label for={id}>
          <code>{name}</code>
        </label>
        {isRequired && <span class="try-required"> required</span>}
        <span class="try-constraint"> {constraint}</span>
        <div class="try-description" id={`${id}-description`}>
          <CodeSpans text={description} />
          <Bounds field={field} />
        </div>
      </div>
      <div class="try-value">
        <FieldInput
          field={field}
          attributes={{
            id,
            value: text,
            "aria-describedby": `${id}-description ${id}-problem`,
            "aria-invalid": problem !== undefined,
            "aria-required": isRequired,
          }}
          onChange={onChange}
        />
        <div class="try-problem" id={`${id}-problem`}>
          {problem !== undefined && `${name} ${problem}.`}
        </div>
      </div>
    </div>
  );
}

/** As the tables of the page state them. */
function Bounds({ field: { values, default: assumed } }: { readonly field: TryItField }) {
  const choices = values?.map((value) => `\`${value}\``).join(", ");
  return (
    <>
      {choices !== undefined && (
        <span class="bound">
          <CodeSpans text={`One of ${choices}`} />
        </span>
      )}
      {assumed !== undefined && (
        <span class="bound">
          Default: <code>{assumed}</code>
        </span>
      )}
    </>
  );
}

interface FieldInputProps {
  readonly field: TryItField;
  readonly attributes: {
    readonly id: string;
    readonly value: string;
    readonly "aria-describedby": string;
    readonly "aria-invalid": boolean;
    readonly "aria-required": boolean;
  };
  readonly onChange: (text: string) => void;
}

function FieldInput({ field, attributes, onChange }: FieldInputProps) {
  const { name, type, values, isRequired, default: assumed } = field;
  if (values !== undefined) {
    return (
      <select {...attributes} onChange={(event) => onChange(event.currentTarget.value)}>
        {(!isRequired || attributes.value === "") && <option value="">not sent</option>}
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
        <button type="button" aria-label="Generate an Idempotency-Key" onClick={() => onChange(randomKey())}>
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
