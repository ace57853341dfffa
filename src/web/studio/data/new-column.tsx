/** Form that adds an empty column to the grid of entries. The service stores the column only when the person writes a value into it. */
import { type FormEvent, useState } from "react";

interface NewColumnFormProps {
  columns: readonly string[];
  addColumn: (column: string) => void;
}

export function NewColumnForm({ columns, addColumn }: NewColumnFormProps) {
  const [name, setName] = useState<string | null>(null);
  if (name === null) {
    return (
      <button type="button" onClick={() => setName("")}>
        Add a column
      </button>
    );
  }
  const isNameTaken = columns.includes(name.trim());
  const submit = (event: FormEvent) => {
    event.preventDefault();
    addColumn(name.trim());
    setName(null);
  };
  return (
    <form className="row" onSubmit={submit} onKeyDown={(event) => event.key === "Escape" && setName(null)}>
      <input
        // biome-ignore lint/a11y/noAutofocus: this field replaces the button that the person has just pressed
        autoFocus
        aria-label="Name of the new column"
        aria-invalid={isNameTaken}
        placeholder="column name"
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <button type="submit" disabled={name.trim() === "" || isNameTaken}>
        Add
      </button>
      {isNameTaken && (
        <span className="fault" role="alert">
          A column with this name exists already.
        </span>
      )}
    </form>
  );
}
