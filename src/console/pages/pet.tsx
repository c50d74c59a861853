import { useState } from "preact/hooks";
import type { BodyOf } from "../../operator/operations.ts";
import { NAME_MAX_LENGTH } from "../../domain/constants.ts";
import { INT64_RANGE, parseIdentifier } from "../../api/json.ts";
import { call, type Pet } from "../admin-api.ts";
import { AuditSection } from "../components/audit-section.tsx";
import { ConfirmDialog, confirmationOf } from "../components/confirm-dialog.tsx";
import { Choices, Field, Problem, useAction } from "../components/form.tsx";
import { Loaded } from "../components/loading.tsx";
import { PetBadge } from "../components/order-badge.tsx";
import { Table } from "../components/table.tsx";
import { count } from "../format.ts";
import { announce } from "../notices.ts";
import { refresh, usePolled } from "../polling.ts";
import { navigate } from "../router.ts";
import { ORDER_COLUMNS } from "./orders.tsx";
import type { PageProps } from "./page.ts";

export function PetPage({ id }: PageProps) {
  const pet = usePolled(`pet ${id}`, () => call("getPet", { id }));
  const [isDeleting, setDeleting] = useState(false);
  return (
    <Loaded of={pet}>
      {(data) => (
        <div class="sections">
          <div class="page-head">
            <span class="crumb">
              <a href="/pets">Pets</a> / pet {id}
            </span>
            <h1 tabIndex={-1}>
              <bdi class="clamp" title={data.name}>
                {data.name}
              </bdi>
            </h1>
            <PetBadge status={data.status} />
            <div class="actions">
              <button type="button" class="danger" onClick={() => setDeleting(true)}>
                Delete
              </button>
            </div>
          </div>
          <div class="columns">
            <section aria-labelledby="correct">
              <h2 id="correct">Correct</h2>
              <PetForm key={`${data.name} ${data.categoryId} ${data.status}`} pet={data} />
            </section>
            <PetOrders id={id} />
          </div>
          <AuditSection target={`pet:${id}`} />
          {isDeleting && <DeleteDialog pet={data} onClose={() => setDeleting(false)} />}
        </div>
      )}
    </Loaded>
  );
}

type Status = "available" | "pending" | "sold" | "none";

const STATUS_OPTIONS = [
  { value: "none", text: "None" },
  { value: "available", text: "Available" },
  { value: "pending", text: "Pending" },
  { value: "sold", text: "Sold" },
] as const;

function PetForm({ pet }: { readonly pet: Pet }) {
  const [name, setName] = useState(pet.name);
  const [category, setCategory] = useState(String(pet.categoryId));
  const [status, setStatus] = useState<Status>(pet.status ?? "none");
  const { isRunning, problem, run } = useAction();
  const categoryId = parseIdentifier(category.trim());
  const before = pet.status ?? "none";
  const body: BodyOf<"updatePet"> = {
    ...(name !== pet.name && { name }),
    ...(categoryId !== undefined &&
      BigInt(categoryId) !== BigInt(pet.categoryId) && { categoryId: BigInt(categoryId) }),
    ...(status !== before && { status: status === "none" ? null : status }),
  };
  const isChanged = Object.keys(body).length > 0;
  async function save() {
    await call("updatePet", { id: pet.id, body });
    announce("Saved. Clients see it at once.");
    await refresh();
  }
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        if (isChanged && categoryId !== undefined) void run(save);
      }}
    >
      <Field label="Name" hint={`1 to ${count(NAME_MAX_LENGTH)} characters`}>
        {(attributes) => (
          <textarea
            {...attributes}
            dir="auto"
            required
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        )}
      </Field>
      <Field label="Category" hint={`An integer ${INT64_RANGE}`}>
        {(attributes) => (
          <input
            {...attributes}
            class="mono"
            type="text"
            required
            value={category}
            aria-invalid={categoryId === undefined}
            onInput={(event) => setCategory(event.currentTarget.value)}
          />
        )}
      </Field>
      <Choices label="Status" value={status} options={STATUS_OPTIONS} onChange={setStatus} />
      <Problem text={problem} />
      <div class="actions">
        <button type="submit" class="primary" disabled={!isChanged || categoryId === undefined || isRunning}>
          Save changes
        </button>
      </div>
    </form>
  );
}

function PetOrders({ id }: { readonly id: string }) {
  const orders = usePolled(`orders of pet ${id}`, () =>
    call("listOrders", { query: { petId: id, limit: 10 } }),
  );
  return (
    <section aria-labelledby="orders">
      <h2 id="orders">Orders</h2>
      <Loaded of={orders}>
        {({ items, nextCursor }) => (
          <>
            {items.length === 0 ? (
              <p class="muted">Nobody has ordered it.</p>
            ) : (
              <Table
                caption="Orders of this pet"
                columns={ORDER_COLUMNS.filter(({ heading }) => heading !== "Pet")}
                rows={items}
                keyOf={(order) => `${order.id}`}
                hasLinks
              />
            )}
            {nextCursor !== null && <a href={`/orders?petId=${id}`}>All orders of this pet</a>}
          </>
        )}
      </Loaded>
    </section>
  );
}

function DeleteDialog({ pet, onClose }: { readonly pet: Pet; readonly onClose: () => void }) {
  const names = { name: pet.name, shortName: `pet ${pet.id}` };
  async function deletePet() {
    await call("deletePet", { id: pet.id });
    announce(`Deleted ${confirmationOf(names)}.`);
    navigate("/pets", { replace: true });
  }
  return (
    <ConfirmDialog action="Delete" {...names} onConfirm={deletePet} onClose={onClose}>
      <p>
        Clients get 404 for it at once, and its identifier is never used again. A pet with orders cannot be
        deleted.
      </p>
    </ConfirmDialog>
  );
}
