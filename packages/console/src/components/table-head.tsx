/** The head of a table, from the words of its columns. */
interface TableHeadProps<Name extends string> {
  readonly columns: Readonly<Record<Name, string>>;
  /** In their order. */
  readonly names: readonly Name[];
  /** Those of numbers. */
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
