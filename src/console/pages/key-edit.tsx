import { useState } from "preact/hooks";
import { call, type Key } from "../admin-api.ts";
import { KeyCreation } from "../components/key-creation.tsx";
import { KeyForm } from "../components/key-form.tsx";
import { Loaded } from "../components/loading.tsx";
import { changesOf, type KeyFormValues, valuesOf } from "../key-form-values.ts";
import { announce } from "../notices.ts";
import { usePolled } from "../polling.ts";
import { navigate } from "../router.ts";
import type { PageProps } from "./page.ts";

export function KeyCreationPage({ session }: PageProps) {
  return (
    <section>
      <div class="page-head">
        <span class="crumb">
          <a href="/keys">Keys</a>
        </span>
        <h1 tabIndex={-1}>Create a key</h1>
      </div>
      <KeyCreation session={session} />
    </section>
  );
}

export function KeyEditPage({ id }: PageProps) {
  const key = usePolled(`key ${id}`, () => call("getKey", { id }));
  return (
    <section>
      <div class="page-head">
        <span class="crumb">
          <a href="/keys">Keys</a> / <a href={`/keys/${id}`}>key {id}</a>
        </span>
        <h1 tabIndex={-1}>Edit key {id}</h1>
      </div>
      <Loaded of={key}>{(data) => <EditForm apiKey={data} />}</Loaded>
    </section>
  );
}

/** The values are those of the first response: what is typed is not overwritten by later ones. */
function EditForm({ apiKey }: { readonly apiKey: Key }) {
  const [initial] = useState(() => valuesOf(apiKey));
  const url = `/keys/${apiKey.id}`;
  async function save(values: KeyFormValues) {
    const body = changesOf(initial, values);
    if (Object.keys(body).length > 0) {
      await call("updateKey", { id: apiKey.id, body });
      announce("Saved. Servers apply it within one second.");
    }
    navigate(url);
  }
  return (
    <KeyForm initial={initial} submitText="Save changes" onSubmit={save}>
      <a class="button" href={url}>
        Cancel
      </a>
    </KeyForm>
  );
}
