/** Collects the parameter values of an SQL statement, and creates unique aliases for its subqueries. */

export class SqlStatement {
  readonly values: unknown[] = [];
  private readonly placeholders = new Map<string, string>();
  private aliasCount = 0;

  /** @param values values of the first parameters, from `$1` on */
  constructor(...values: unknown[]) {
    this.values.push(...values);
  }

  /** Adds a parameter, and returns its placeholder such as `$2::text`. Values from requests must not get into SQL in any other way. */
  bind(
    value: unknown,
    type: "text" | "text[]" | "jsonb" | "jsonb[]" | "numeric" | "bigint" | "bigint[]" | "integer" | "float8",
  ): string {
    // Uses of the same text share one parameter, because texts such as column names often repeat.
    const key = typeof value === "string" ? `${type} ${value}` : null;
    const knownPlaceholder = key === null ? undefined : this.placeholders.get(key);
    if (knownPlaceholder) return knownPlaceholder;
    this.values.push(value);
    const placeholder = `$${this.values.length}::${type}`;
    if (key !== null) this.placeholders.set(key, placeholder);
    return placeholder;
  }

  createAlias(): string {
    this.aliasCount += 1;
    return `q${this.aliasCount}`;
  }
}
