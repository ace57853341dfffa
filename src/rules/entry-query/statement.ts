/** Collects the parameter values of an SQL statement, and creates unique aliases for its subqueries. */

export class SqlStatement {
  readonly values: unknown[] = [];
  private readonly placeholders = new Map<string, string>();
  private names = 0;

  /** @param values first parameters of the statement, starting with `$1` */
  constructor(...values: unknown[]) {
    this.values.push(...values);
  }

  /**
   * Adds a parameter, and returns its placeholder such as `$2::text`. All values from callers must be bound, so that they
   * cannot become SQL.
   */
  bind(
    value: unknown,
    type: "text" | "text[]" | "jsonb" | "jsonb[]" | "numeric" | "bigint" | "bigint[]" | "integer" | "float8",
  ): string {
    // Texts often repeat, such as column names: all uses of a text share one parameter.
    const key = typeof value === "string" ? `${type} ${value}` : null;
    const knownPlace = key === null ? undefined : this.placeholders.get(key);
    if (knownPlace) return knownPlace;
    this.values.push(value);
    const placeholder = `$${this.values.length}::${type}`;
    if (key !== null) this.placeholders.set(key, placeholder);
    return placeholder;
  }

  /** Returns a new alias for a subquery. */
  createAlias(): string {
    this.names += 1;
    return `q${this.names}`;
  }
}
