/** Builds an SQL statement: numbers its parameters, and creates unique names. */

export class Statement {
  readonly values: unknown[] = [];
  private readonly places = new Map<string, string>();
  private names = 0;

  /** @param values first parameters of the statement, starting with `$1` */
  constructor(...values: unknown[]) {
    this.values.push(...values);
  }

  /** Adds a parameter with a PostgreSQL type. Values of callers enter statements only this way, so that they cannot become SQL. */
  bind(
    value: unknown,
    type: "text" | "text[]" | "jsonb" | "jsonb[]" | "numeric" | "bigint" | "bigint[]" | "integer" | "float8",
  ): string {
    // Reuses the parameter of repeated texts, such as names of columns.
    const key = typeof value === "string" ? `${type} ${value}` : null;
    const knownPlace = key === null ? undefined : this.places.get(key);
    if (knownPlace) return knownPlace;
    this.values.push(value);
    const placeholder = `$${this.values.length}::${type}`;
    if (key !== null) this.places.set(key, placeholder);
    return placeholder;
  }

  name(): string {
    this.names += 1;
    return `q${this.names}`;
  }
}
