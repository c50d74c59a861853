import { grouped } from "../../text/formatting.ts";
import { INT64_RANGE, parseIdentifier } from "../../api/json.ts";
import { NAME_MAX_LENGTH } from "../../domain/size-limits.ts";
import { PET_STATUSES, type PetUpdate } from "../../domain/resources.ts";
import { call, may, type Pet, RejectedRequest } from "../admin-api.ts";
import { ActionButton } from "../components/dialogs.tsx";
import { Choices, Form, TextField, useDraft } from "../components/forms.tsx";
import { Details, Empty, NameTitle, PageHead, type PageProps, PageSection } from "../components/page.tsx";
import { type Column, Latest, ListPage, useList } from "../components/tables.tsx";
import { Badge, Facts, NameLink } from "../components/values.tsx";
import { changesOf } from "../key-form-values.ts";
import { refresh, useCall } from "../polling.ts";
import { navigate } from "../router.ts";
import { AuditSection } from "./audit.tsx";
import { ORDER_COLUMNS_OF_PET } from "./orders.tsx";
import { announce } from "../state.ts";

const COLUMNS: readonly Column<Pet>[] = [
  {
    heading: "Name",
    position: "lead",
    cell: ({ id, name }) => <NameLink url={`/pets/${id}`} name={name} />,
  },
  { heading: "Id", isNumber: true, cell: ({ id }) => String(id) },
  { heading: "Category", isNumber: true, cell: ({ categoryId }) => String(categoryId) },
  { heading: "Status", position: "at-end", cell: PetBadge },
];

function PetBadge({ status }: Pick<Pet, "status">) {
  if (status === undefined) return <span class="muted">none</span>;
  return <Badge meaning={status === "available" ? "ok" : "muted"} text={status} />;
}

const FILTERS = {
  search: { type: "search", placeholder: "Name or id" },
  status: { options: PET_STATUSES },
} as const;

export function PetListPage() {
  return (
    <ListPage
      title="Pets"
      noun="pet"
      of={useList((query) => call("listPets", { query }))}
      filters={FILTERS}
      columns={COLUMNS}
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
    />
  );
}

export function PetCreationPage() {
  return (
    <section>
      <PageHead title="Add a pet" />
      <PetForm />
    </section>
  );
}

const DELETION = "Clients get 404 for it at once, and its identifier is never used again.";

export function PetDetailsPage({ id }: PageProps) {
  const pet = useCall("getPet", { id });
  const orders = useCall("listOrders", { query: { petId: id, limit: 10 } });
  const hasOrders = (orders.data?.items.length ?? 0) > 0;
  return (
    <Details of={pet} kind="pet" id={id}>
      {(data) => (
        <div class="sections">
          <PageHead title={<NameTitle name={data.name} />} badge={<PetBadge {...data} />} />
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
            <Latest
              of={orders}
              title="Orders"
              columns={ORDER_COLUMNS_OF_PET}
              none="Nobody has ordered it."
              allUrl={`/orders?petId=${id}`}
            />
          </div>
          <AuditSection target={`pet:${id}`} />
          {may("deletePet") && (
            <PageSection title="Delete">
              <p class="muted">
                {hasOrders ? "It has orders, which name it: it cannot be deleted." : DELETION}
              </p>
              <div class="actions">
                <ActionButton
                  class="danger"
                  disabled={hasOrders}
                  title="Delete"
                  name={data.name}
                  shortName={`pet ${id}`}
                  isFinal
                  run={() => deletePet(id)}
                  done="Deleted"
                  text={DELETION}
                />
              </div>
            </PageSection>
          )}
        </div>
      )}
    </Details>
  );
}

const STATUSES = (["none", ...PET_STATUSES] as const).map((value) => ({ value }));

function valuesOf(pet?: Pet) {
  const status: (typeof STATUSES)[number]["value"] = pet ? (pet.status ?? "none") : "available";
  return { name: pet?.name ?? "", categoryId: `${pet?.categoryId ?? ""}`, status };
}

function bodyOf({ name, categoryId, status }: ReturnType<typeof valuesOf>): Required<PetUpdate> {
  const identifier = parseIdentifier(categoryId.trim());
  if (identifier === undefined)
    throw new RejectedRequest(`It must be an integer ${INT64_RANGE}.`, false, "categoryId");
  return { name, categoryId: BigInt(identifier), status: status === "none" ? null : status };
}

/** The form of a new pet, or of changes to a pet. */
function PetForm({ pet }: { readonly pet?: Pet }) {
  const { base, values, isDirty, restart, notice, inputOf } = useDraft(valuesOf(pet));
  async function save() {
    if (pet === undefined) {
      const { status, ...body } = bodyOf(values);
      const { id } = await call("createPet", { body: { ...body, ...(status && { status }) } });
      announce("Added. Clients see it at once.");
      return navigate(`/pets/${id}`, { isDone: true });
    }
    const body = changesOf(bodyOf(base), bodyOf(values));
    if (Object.keys(body).length === 0) return restart(valuesOf(pet));
    const saved = await call("updatePet", { id: pet.id, body });
    announce("Saved. Clients see it at once.");
    await refresh();
    restart(valuesOf(saved));
  }
  return (
    <Form
      submitText={pet ? "Save changes" : "Add pet"}
      onSubmit={save}
      isDirty={isDirty}
      isReady={isDirty}
      {...(pet === undefined && { cancelUrl: "/pets" })}
    >
      {notice}
      <TextField
        hint={`1 to ${grouped(NAME_MAX_LENGTH)} characters`}
        type="multiline"
        required
        autofocus={pet === undefined}
        {...inputOf("name")}
      />
      <TextField
        {...inputOf("categoryId")}
        label="Category"
        hint={`An integer ${INT64_RANGE}`}
        class="mono"
        required
      />
      <Choices options={STATUSES} {...inputOf("status")} />
    </Form>
  );
}

async function deletePet(id: string): Promise<undefined> {
  await call("deletePet", { id });
  navigate("/pets", { replace: true, isDone: true });
}
