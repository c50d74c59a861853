import { useState } from "preact/hooks";
import { parseIdentifier } from "../../api/json.ts";
import { call, type Pet } from "../admin-api.ts";
import { Filters, SelectFilter } from "../components/filters.tsx";
import { Empty, Loaded } from "../components/loading.tsx";
import { PetBadge } from "../components/order-badge.tsx";
import { type Column, Pager, Table } from "../components/table.tsx";
import { usePolled } from "../polling.ts";
import { navigate, usePlace } from "../router.ts";

const STATUSES = ["available", "pending", "sold"] as const;

const COLUMNS: readonly Column<Pet>[] = [
  {
    heading: "Name",
    isLead: true,
    cell: ({ id, name }) => (
      <a class="row-link" href={`/pets/${id}`}>
        <bdi class="name" title={name}>
          {name}
        </bdi>
      </a>
    ),
  },
  { heading: "Id", isNumber: true, cell: ({ id }) => String(id) },
  { heading: "Category", isNumber: true, cell: ({ categoryId }) => String(categoryId) },
  { heading: "Status", cell: ({ status }) => <PetBadge status={status} /> },
];

export function Pets() {
  const { query } = usePlace();
  const pets = usePolled(`pets ${query}`, () => {
    const { status, cursor } = Object.fromEntries(query);
    return call("listPets", { query: { status, cursor, limit: 50 } });
  });
  return (
    <section>
      <h1 tabIndex={-1}>Pets</h1>
      <Filters>
        <SelectFilter
          label="Status"
          name="status"
          options={STATUSES.map((status) => [status, status] as const)}
        />
        <OpenById />
      </Filters>
      <Loaded of={pets}>
        {({ items, nextCursor }) => (
          <>
            {items.length === 0 ? (
              <NoPets isFiltered={query.size > 0} />
            ) : (
              <Table caption="Pets" columns={COLUMNS} rows={items} keyOf={({ id }) => `${id}`} hasLinks />
            )}
            <Pager nextCursor={nextCursor} />
          </>
        )}
      </Loaded>
    </section>
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

function NoPets({ isFiltered }: { readonly isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title="No pet matches">
      <p>
        <a href="/pets">Clear the filter</a> to see all pets.
      </p>
    </Empty>
  ) : (
    <Empty title="There are no pets yet">
      <p>
        A client adds one with <code>POST /v1/pets</code>. Its name, category and status can be corrected
        here.
      </p>
    </Empty>
  );
}
