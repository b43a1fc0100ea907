interface TableHeadProps<Name extends string> {
  readonly columns: Readonly<Record<Name, string>>;
  readonly names: readonly Name[];
  readonly right?: readonly Name[];
}

export function TableHead<const Name extends string>({ columns, names, right = [] }: TableHeadProps<Name>) {
  return (
    <thead>
      <tr>
        {names.map((name) => (
          <th key={name} scope="col" class={right.includes(name) ? "right" : undefined}>
            {columns[name]}
          </th>
        ))}
      </tr>
    </thead>
  );
}
