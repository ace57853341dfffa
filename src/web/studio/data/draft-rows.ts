/** Checks rows of forms whose value is an object with one field per row. Pure functions. */

/** Operations on one column, as the form for hooks lists them. */
export type OperationsRow = [column: string, operations: string[]];

/** Returns the first key that two rows share, or null. Two such rows would become one field of the object. */
export function findDuplicate(keys: readonly string[]): string | null {
  return keys.find((key, at) => keys.indexOf(key) !== at) ?? null;
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** True if the form for hooks can show the value without losing parts of it. */
export function isHookValue(value: unknown): boolean {
  if (!Array.isArray(value)) return false;
  return value.every((hook: unknown) => {
    if (!isRecord(hook) || !Array.isArray(hook["runOn"])) return false;
    const { type, fields, to } = hook;
    if (type === "operations") return isRecord(fields) && Object.values(fields).every(Array.isArray);
    if (type === "email") return Array.isArray(to) && to.length === 1 && isRecord(to[0]);
    return type === "sms";
  });
}
