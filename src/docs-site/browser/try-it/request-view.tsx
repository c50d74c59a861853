import { useId, useState } from "preact/hooks";
import { CodeBlock } from "./code.tsx";
import { type ApiRequest, curlText, httpText } from "./request.ts";

const HTTP = {
  name: "HTTP",
  textOf: httpText,
  syntax: "http",
  hint: "Your browser adds headers of its own. The key is masked here, not in the request.",
} as const;
const CURL = {
  name: "curl",
  textOf: curlText,
  syntax: "sh",
  hint: "Set the variable KEY to your API key first.",
} as const;
const FORMS = [HTTP, CURL];

/** The request as text, while it is edited: as it is sent, or for a shell. */
export function RequestView({ request }: { readonly request: ApiRequest }) {
  const [form, setForm] = useState<(typeof FORMS)[number]>(HTTP);
  const name = useId();
  return (
    <div class="try-request">
      <h3>Request as sent</h3>
      <fieldset class="try-forms">
        <legend class="visually-hidden">Show the request as</legend>
        <div class="tabs">
          {FORMS.map((each) => (
            <label key={each.name}>
              <input type="radio" name={name} checked={each === form} onChange={() => setForm(each)} />
              {each.name}
            </label>
          ))}
        </div>
        <CodeBlock label="Request as sent" code={form.textOf(request)} syntax={form.syntax} />
      </fieldset>
      <p class="try-hint">{form.hint}</p>
    </div>
  );
}
