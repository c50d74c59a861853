import { useState } from "preact/hooks";
import { grouped } from "../../api/formatting.ts";
import { INT64_RANGE, parseIdentifier } from "../../api/json.ts";
import { NAME_MAX_LENGTH } from "../../domain/constants.ts";
import { PET_STATUSES } from "../../domain/resources.ts";
import { call, may, type Pet, Refused } from "../admin-api.ts";
import { ActionDialog } from "../components/dialogs.tsx";
import { SelectFilter, TextFilter } from "../components/filters.tsx";
import { Choices, Form, TextField, useDraft } from "../components/forms.tsx";
import { Details, Empty, NameTitle, PageHead, type PageProps, PageSection } from "../components/page.tsx";
import { type Column, ListPage } from "../components/tables.tsx";
import { Badge, Facts, NameLink } from "../components/values.tsx";
import { capitalized } from "../format.ts";
import { announce } from "../observable.ts";
import { refresh, usePolled } from "../polling.ts";
import { navigate } from "../router.ts";
import { AuditSection } from "./audit.tsx";
import { OrdersOfPet, useOrdersOfPet } from "./orders.tsx";

const COLUMNS: readonly Column<Pet>[] = [
  {
    heading: "Name",
    isLead: true,
    cell: ({ id, name }) => <NameLink url={`/pets/${id}`} name={name} />,
  },
  { heading: "Id", isNumber: true, cell: ({ id }) => String(id) },
  { heading: "Category", isNumber: true, cell: ({ categoryId }) => String(categoryId) },
  { heading: "Status", isAtEnd: true, cell: ({ status }) => <PetBadge status={status} /> },
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
      actions={
        may("createPet") && (
          <a class="button primary" href="/pets/new">
            Add pet
          </a>
        )
      }
      empty={
        <Empty title="There are no pets yet">
          {may("createPet") && <a href="/pets/new">Add the first one.</a>} Clients add pets with{" "}
          <code>POST /v1/pets</code>.
        </Empty>
      }
    >
      <TextFilter label="Search" name="search" type="search" placeholder="Name or id" maxLength={200} />
      <SelectFilter label="Status" name="status" options={PET_STATUSES} />
    </ListPage>
  );
}

export function PetCreationPage() {
  return (
    <section>
      <PageHead crumb={<a href="/pets">Pets</a>} title="Add a pet" />
      <PetForm />
    </section>
  );
}

export function PetDetailsPage({ id }: PageProps) {
  const pet = usePolled(`pet ${id}`, () => call("getPet", { id }));
  const orders = useOrdersOfPet(id);
  const [isDeleting, setDeleting] = useState(false);
  const hasOrders = (orders.data?.items.length ?? 0) > 0;
  return (
    <Details of={pet} kind="pet" id={id}>
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
          />
          <div class="columns">
            {may("updatePet") ? (
              <PageSection title="Correct">
                <PetForm pet={data} />
              </PageSection>
            ) : (
              <PageSection title="About">
                <Facts facts={{ Name: <bdi>{data.name}</bdi>, Category: String(data.categoryId) }} />
              </PageSection>
            )}
            <OrdersOfPet id={id} orders={orders} />
          </div>
          <AuditSection target={`pet:${id}`} />
          {may("deletePet") && (
            <PageSection title="Delete">
              <p class="muted">
                {hasOrders
                  ? "It has orders, which name it: it cannot be deleted."
                  : "Clients get 404 for it at once, and its identifier is never used again."}
              </p>
              <div class="actions">
                <button type="button" class="danger" disabled={hasOrders} onClick={() => setDeleting(true)}>
                  Delete
                </button>
              </div>
            </PageSection>
          )}
          {isDeleting && <DeleteDialog pet={data} onClose={() => setDeleting(false)} />}
        </div>
      )}
    </Details>
  );
}

const STATUSES = (["none", ...PET_STATUSES] as const).map((value) => ({
  value,
  text: capitalized(value),
}));

function valuesOf(pet?: Pet) {
  const status: (typeof STATUSES)[number]["value"] = pet ? (pet.status ?? "none") : "available";
  return { name: pet?.name ?? "", category: `${pet?.categoryId ?? ""}`, status };
}

/** The form of a new pet, or of corrections. */
function PetForm({ pet }: { readonly pet?: Pet }) {
  const { base, values, isDirty, set, restart, notice } = useDraft(valuesOf(pet));
  const { name, category, status } = values;
  async function save() {
    const categoryId = parseIdentifier(category.trim());
    if (categoryId === undefined)
      throw new Refused(`It must be an integer ${INT64_RANGE}.`, false, "categoryId");
    const fields = { name, categoryId: BigInt(categoryId) };
    if (pet === undefined) {
      const body = { ...fields, ...(status !== "none" && { status }) };
      const { id } = await call("createPet", { body });
      announce("Added. Clients see it at once.");
      return navigate(`/pets/${id}`, { isDone: true });
    }
    const body = {
      ...(name !== base.name && { name }),
      ...(category !== base.category && { categoryId: fields.categoryId }),
      ...(status !== base.status && { status: status === "none" ? null : status }),
    };
    const saved = await call("updatePet", { id: pet.id, body });
    announce("Saved. Clients see it at once.");
    await refresh();
    restart(valuesOf(saved));
  }
  return (
    <Form
      submit={pet ? "Save changes" : "Add pet"}
      onSubmit={save}
      isDirty={isDirty}
      isReady={isDirty}
      {...(pet === undefined && { cancelUrl: "/pets" })}
    >
      {notice}
      <TextField
        label="Name"
        field="name"
        hint={`1 to ${grouped(NAME_MAX_LENGTH)} characters`}
        type="multiline"
        required
        autofocus={pet === undefined}
        value={name}
        onInput={(name) => set({ name })}
      />
      <TextField
        label="Category"
        field="categoryId"
        hint={`An integer ${INT64_RANGE}`}
        class="mono"
        required
        value={category}
        onInput={(category) => set({ category })}
      />
      <Choices label="Status" value={status} options={STATUSES} onChange={(status) => set({ status })} />
    </Form>
  );
}

function DeleteDialog({ pet, onClose }: { readonly pet: Pet; readonly onClose: () => void }) {
  async function deletePet() {
    await call("deletePet", { id: pet.id });
    navigate("/pets", { replace: true, isDone: true });
  }
  return (
    <ActionDialog
      title="Delete"
      name={pet.name}
      shortName={`pet ${pet.id}`}
      isFinal
      run={deletePet}
      done="Deleted"
      onClose={onClose}
    >
      Clients get 404 for it at once, and its identifier is never used again.
    </ActionDialog>
  );
}
