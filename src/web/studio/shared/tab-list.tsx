/** Row of tabs of which one is selected. The caller shows the panel. */

interface TabListProps<Name extends string> {
  label: string;
  names: readonly Name[];
  selected: Name;
  select: (name: Name) => void;
}

export function TabList<Name extends string>({ label, names, selected, select }: TabListProps<Name>) {
  return (
    <div className="tabs" role="tablist" aria-label={label}>
      {names.map((name) => (
        <button
          key={name}
          type="button"
          role="tab"
          className="tab"
          aria-selected={name === selected}
          onClick={() => select(name)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}
