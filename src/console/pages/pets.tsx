import { useState } from "preact/hooks";
import { grouped } from "../../api/formatting.ts";
import { INT64_RANGE, parseIdentifier } from "../../api/json.ts";
import { NAME_MAX_LENGTH } from "../../domain/constants.ts";
import { PET_STATUSES } from "../../domain/resources.ts";
import type { BodyOf } from "../../operator/operations.ts";
import { call, type Pet } from "../admin-api.ts";
import { ActionDialog } from "../components/dialogs.tsx";
import { SelectFilter } from "../components/filters.tsx";
import { Choices, Form, TextField } from "../components/forms.tsx";
import { Empty, Loaded, NameTitle, PageHead, type PageProps, PageSection } from "../components/page.tsx";
import { type Column, ListPage } from "../components/tables.tsx";
import { Badge, NameLink } from "../components/values.tsx";
import { capitalized } from "../format.ts";
import { announce } from "../observable.ts";
import { refresh, usePolled } from "../polling.ts";
import { navigate } from "../router.ts";
import { AuditSection } from "./audit.tsx";
import { OrdersOfPet } from "./orders.tsx";

const COLUMNS: readonly Column<Pet>[] = [
  {
    heading: "Name",
    isLead: true,
    cell: ({ id, name }) => <NameLink url={`/pets/${id}`} name={name} />,
  },
  { heading: "Id", isNumber: true, cell: ({ id }) => String(id) },
  { heading: "Category", isNumber: true, cell: ({ categoryId }) => String(categoryId) },
  { heading: "Status", cell: ({ status }) => <PetBadge status={status} /> },
];

function PetBadge({ status }: { readonly status: Pet["status"] | undefined }) {
  if (status === undefined) return <span class="muted">none</span>;
  return <Badge meaning={status === "available" ? "ok" : "muted"} text={status} />;
}

export function PetListPage() {
  return (
    <ListPage
      title="Pets"
      noun="pet"
      caption="Pets"
      columns={COLUMNS}
      load={(query) => call("listPets", { query })}
      empty={
        <Empty title="There are no pets yet">
          A client adds one with <code>POST /v1/pets</code>. Its name, category and status can be corrected
          here.
        </Empty>
      }
    >
      <SelectFilter label="Status" name="status" options={PET_STATUSES} />
      <OpenById />
    </ListPage>
  );
}

function OpenById() {
  const [text, setText] = useState("");
  const id = parseIdentifier(text.trim());
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (id !== undefined) navigate(`/pets/${id}`);
      }}
    >
      <label>
        Open by id
        <input
          type="text"
          inputMode="numeric"
          autocomplete="off"
          placeholder="Identifier, then Enter"
          value={text}
          aria-invalid={text !== "" && id === undefined}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
    </form>
  );
}

export function PetDetailsPage({ id }: PageProps) {
  const pet = usePolled(`pet ${id}`, () => call("getPet", { id }));
  const [isDeleting, setDeleting] = useState(false);
  return (
    <Loaded of={pet}>
      {(data) => (
        <div class="sections">
          <PageHead
            crumb={
              <>
                <a href="/pets">Pets</a> / pet {id}
              </>
            }
            title={<NameTitle name={data.name} />}
            badge={<PetBadge status={data.status} />}
            actions={
              <button type="button" class="danger" onClick={() => setDeleting(true)}>
                Delete
              </button>
            }
          />
          <div class="columns">
            <PageSection title="Correct">
              <PetForm key={`${data.name} ${data.categoryId} ${data.status}`} pet={data} />
            </PageSection>
            <OrdersOfPet id={id} />
          </div>
          <AuditSection target={`pet:${id}`} />
          {isDeleting && <DeleteDialog pet={data} onClose={() => setDeleting(false)} />}
        </div>
      )}
    </Loaded>
  );
}

type Status = (typeof PET_STATUSES)[number] | "none";
const STATUS_OPTIONS = (["none", ...PET_STATUSES] as const).map((value) => ({
  value,
  text: capitalized(value),
}));

function PetForm({ pet }: { readonly pet: Pet }) {
  const before: Status = pet.status ?? "none";
  const [name, setName] = useState(pet.name);
  const [category, setCategory] = useState(String(pet.categoryId));
  const [status, setStatus] = useState(before);
  const categoryId = parseIdentifier(category.trim());
  const body: BodyOf<"updatePet"> = {
    ...(name !== pet.name && { name }),
    ...(categoryId !== undefined &&
      BigInt(categoryId) !== BigInt(pet.categoryId) && { categoryId: BigInt(categoryId) }),
    ...(status !== before && { status: status === "none" ? null : status }),
  };
  async function save() {
    await call("updatePet", { id: pet.id, body });
    announce("Saved. Clients see it at once.");
    await refresh();
  }
  return (
    <Form
      submit="Save changes"
      onSubmit={save}
      isReady={Object.keys(body).length > 0 && categoryId !== undefined}
    >
      <TextField
        label="Name"
        hint={`1 to ${grouped(NAME_MAX_LENGTH)} characters`}
        type="multiline"
        required
        value={name}
        onInput={setName}
      />
      <TextField
        label="Category"
        hint={`An integer ${INT64_RANGE}`}
        class="mono"
        required
        value={category}
        aria-invalid={categoryId === undefined}
        onInput={setCategory}
      />
      <Choices label="Status" value={status} options={STATUS_OPTIONS} onChange={setStatus} />
    </Form>
  );
}

function DeleteDialog({ pet, onClose }: { readonly pet: Pet; readonly onClose: () => void }) {
  async function deletePet() {
    await call("deletePet", { id: pet.id });
    navigate("/pets", { replace: true });
  }
  return (
    <ActionDialog
      action="Delete"
      name={pet.name}
      shortName={`pet ${pet.id}`}
      isFinal
      run={deletePet}
      done="Deleted"
      onClose={onClose}
    >
      Clients get 404 for it at once, and its identifier is never used again. A pet with orders cannot be
      deleted.
    </ActionDialog>
  );
}
