import { parseIdentifier } from "../../api/json.ts";
import { Invalid } from "../../api/schema.ts";
import { labelOf, mapValues, type ResourceField, withoutNulls } from "../../domain/fields.ts";
import { GIVEN_PET_FIELDS, NewPet, PET_FIELDS, PET_STATUSES } from "../../domain/pets-and-orders.ts";
import { call, type Pet, RejectedRequest } from "../admin-api.ts";
import { may } from "../session.ts";
import { ActionButton } from "../components/action-dialog.tsx";
import { Form } from "../components/forms.tsx";
import { ResourceInput } from "../components/fields.tsx";
import { useDraft } from "../components/draft.tsx";
import {
  Details,
  Empty,
  FormPage,
  NameTitle,
  PageHead,
  type PageProps,
  PageSection,
} from "../components/page.tsx";
import type { Column } from "../components/tables.tsx";
import { Latest, ListPage, useList } from "../components/lists.tsx";
import { Facts, LocalTime, NameLink, NO_VALUE, StatusBadge } from "../components/values.tsx";
import { Copyable } from "../components/copying.tsx";
import { refresh, useCall } from "../polling.ts";
import { navigate } from "../router.ts";
import { AuditSection } from "./audit.tsx";
import { ORDER_COLUMNS_OF_PET } from "./orders.tsx";
import { announce } from "../state.ts";

const COLUMNS: readonly Column<Pet>[] = [
  {
    heading: "Name",
    position: "lead",
    isRowLink: true,
    cell: ({ id, name }) => <NameLink url={`/pets/${id}`} name={name} />,
  },
  { heading: "Id", isNumber: true, cell: ({ id }) => <Copyable text={String(id)} /> },
  { heading: "Category", isNumber: true, cell: ({ categoryId }) => String(categoryId) },
  {
    heading: "Status",
    position: "at-end",
    cell: ({ status }) => (status ? <StatusBadge status={status} /> : NO_VALUE),
  },
];

const FILTERS = {
  search: { type: "search", placeholder: "Name or id" },
  status: { options: PET_STATUSES },
} as const;

export function PetListPage() {
  const add = may("createPet") && (
    <a class="button primary" href="/pets/new">
      Add pet
    </a>
  );
  return (
    <ListPage
      title="Pets"
      noun="pet"
      of={useList((query) => call("listPets", { query }))}
      filters={FILTERS}
      columns={COLUMNS}
      actions={add}
      empty={
        <Empty title="There are no pets yet" action={add}>
          Pets that clients add with <code>POST /v1/pets</code> appear here.
        </Empty>
      }
    />
  );
}

export function PetCreationPage() {
  return (
    <FormPage
      title="Add a pet"
      about="Clients see it at once. An order makes it pending, and sold when the order is completed."
    >
      <PetForm />
    </FormPage>
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
          <PageHead
            title={<NameTitle name={data.name} />}
            badge={data.status && <StatusBadge status={data.status} />}
          />
          <p class="sentence">Clients can{(data.status ?? "available") !== "available" && "not"} order it.</p>
          <div class={may("updatePet") ? "with-aside" : "sections"}>
            <div class="sections">
              <Facts isCard facts={factsOf(data)} />
              <Latest
                of={orders}
                title="Orders"
                columns={ORDER_COLUMNS_OF_PET}
                none="Nobody has ordered it."
                allUrl={`/orders?petId=${id}`}
              />
            </div>
            {may("updatePet") && (
              <aside>
                <PageSection title="Edit">
                  <PetForm pet={data} />
                </PageSection>
              </aside>
            )}
            <div class="sections">
              <AuditSection target={`pet:${id}`} />
              {may("deletePet") && (
                <PageSection title="Delete" isCard>
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
          </div>
        </div>
      )}
    </Details>
  );
}

/** The text of each field in the form; empty if the pet has no such value. */
function valuesOf(pet: Partial<Pet> = { status: "available" }) {
  return mapValues(GIVEN_PET_FIELDS, (_field, name) => String(pet[name] ?? ""));
}

/** The values of a pet. The head of the page shows the name and the status. */
function factsOf(pet: Pet) {
  const { name: _name, status: _status, ...fields } = PET_FIELDS;
  const facts = Object.entries<ResourceField>(fields).flatMap(([name, { storedAs }]) => {
    const value: unknown = Reflect.get(pet, name);
    if (value === undefined) return [];
    const text = String(value);
    if (name === "id") return [["Identifier", <Copyable text={text} />]];
    return [[labelOf(name), storedAs === "time" ? <LocalTime at={text} /> : <bdi>{text}</bdi>]];
  });
  return Object.fromEntries(facts);
}

/** The pet that the form describes. */
function petOf(values: ReturnType<typeof valuesOf>): NewPet {
  const given = mapValues(GIVEN_PET_FIELDS, ({ schema: { kind } }, name) => {
    const text = values[name];
    if (text.trim() === "") return null;
    return kind === "int64" || kind === "integer" ? (parseIdentifier(text.trim()) ?? text) : text;
  });
  const pet = NewPet.read(withoutNulls(given));
  if (!(pet instanceof Invalid)) return pet;
  const [{ path, message } = { path: [], message: "is not valid" }] = pet.problems;
  throw new RejectedRequest(`It ${message}.`, 400, String(path[0]));
}

/** The values of all fields. Null removes a value. */
function changeTo(values: ReturnType<typeof valuesOf>) {
  return { ...mapValues(GIVEN_PET_FIELDS, () => null), ...petOf(values) };
}

/** The form of a new pet, or of changes to a pet. */
function PetForm({ pet }: { readonly pet?: Pet }) {
  const { values, isDirty, restart, notice, inputOf, sendChanges } = useDraft(valuesOf(pet));
  async function save() {
    if (pet === undefined) {
      const { id } = await call("createPet", { body: petOf(values) });
      announce("Added. Clients see it at once.");
      return navigate(`/pets/${id}`, { isDone: true });
    }
    const saved = await sendChanges(changeTo, (body) => call("updatePet", { id: pet.id, body }));
    if (saved !== undefined) {
      announce("Saved. Clients see it at once.");
      await refresh();
    }
    restart(valuesOf(saved ?? pet));
  }
  return (
    <Form
      submitText={pet ? "Save changes" : "Add pet"}
      onSubmit={save}
      isDirty={isDirty}
      isReady={pet === undefined || isDirty}
      {...(pet === undefined && { cancelUrl: "/pets" })}
    >
      {notice}
      {Object.values(
        mapValues(GIVEN_PET_FIELDS, (field, name) => (
          <ResourceInput
            key={name}
            of={field}
            autofocus={pet === undefined && name === "name"}
            {...inputOf(name)}
          />
        )),
      )}
    </Form>
  );
}

async function deletePet(id: string): Promise<undefined> {
  await call("deletePet", { id });
  navigate("/pets", { replace: true, isDone: true });
}
