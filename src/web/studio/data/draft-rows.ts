/** Checks the rows of forms that edit an object with one field per row. Pure functions. */

/** One row of the form for hooks: a column, and the operations that the hook applies to its value. */
export type ColumnOperationsRow = [column: string, operations: string[]];

/** Returns the first key that two rows have, or null. The stored object would contain only one of the two rows. */
export function findDuplicateKey(keys: readonly string[]): string | null {
  return keys.find((key, index) => keys.indexOf(key) !== index) ?? null;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** True if the form for hooks can show the value without losing parts of it. */
export function canEditHooksInForm(value: unknown): boolean {
  if (!Array.isArray(value)) return false;
  return value.every((hook: unknown) => {
    if (!isRecord(hook) || !Array.isArray(hook["runOn"])) return false;
    const { type, fields, to } = hook;
    if (type === "operations") return isRecord(fields) && Object.values(fields).every(Array.isArray);
    if (type === "email") return Array.isArray(to) && to.length === 1 && isRecord(to[0]);
    return type === "sms";
  });
}
