/** Collects the parameter values of an SQL statement, and creates unique aliases for its subqueries. */

export class SqlStatement {
  readonly values: unknown[] = [];
  private readonly placeholders = new Map<string, string>();
  private names = 0;

  /** @param values values of the statement's first parameters, starting with `$1` */
  constructor(...values: unknown[]) {
    this.values.push(...values);
  }

  /**
   * Adds a parameter, and returns its placeholder such as `$2::text`. Callers must pass all values from requests
   * through this method, so that they cannot become SQL.
   */
  bind(
    value: unknown,
    type: "text" | "text[]" | "jsonb" | "jsonb[]" | "numeric" | "bigint" | "bigint[]" | "integer" | "float8",
  ): string {
    // All uses of the same text share one parameter, because texts such as column names often repeat.
    const key = typeof value === "string" ? `${type} ${value}` : null;
    const knownPlace = key === null ? undefined : this.placeholders.get(key);
    if (knownPlace) return knownPlace;
    this.values.push(value);
    const placeholder = `$${this.values.length}::${type}`;
    if (key !== null) this.placeholders.set(key, placeholder);
    return placeholder;
  }

  /** Returns an alias for a subquery that is unique in the statement. */
  createAlias(): string {
    this.names += 1;
    return `q${this.names}`;
  }
}
