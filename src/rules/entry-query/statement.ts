/** One statement while it is composed: its parameters, and names that no other part of it has. Knows no table. */

export class Statement {
  readonly values: unknown[] = [];
  private readonly places = new Map<string, string>();
  private names = 0;

  /** @param values those that the statement begins with, `$1` the first */
  constructor(...values: unknown[]) {
    this.values.push(...values);
  }

  /** The place of a value, of a PostgreSQL type: the only way in which anything of a caller enters a statement. */
  bind(
    value: unknown,
    type: "text" | "text[]" | "jsonb" | "jsonb[]" | "numeric" | "bigint" | "bigint[]" | "integer" | "float8",
  ): string {
    // Names of columns come again and again.
    const key = typeof value === "string" ? `${type} ${value}` : null;
    const known = key === null ? undefined : this.places.get(key);
    if (known) return known;
    this.values.push(value);
    const place = `$${this.values.length}::${type}`;
    if (key !== null) this.places.set(key, place);
    return place;
  }

  name(): string {
    this.names += 1;
    return `q${this.names}`;
  }
}
