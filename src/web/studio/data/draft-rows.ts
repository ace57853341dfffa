/** Rows of a form whose value is an object: each row has its own key. Pure; use-rows.ts and the tests use it. */

/** Operations on one column, as the form of a hook lists them. */
export type OperationsRow = [column: string, operations: string[]];

/** Returns the first key that two rows have, or null. Two rows with one key would become one field of the object. */
export function duplicateOf(keys: readonly string[]): string | null {
  return keys.find((key, at) => keys.indexOf(key) !== at) ?? null;
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** True if the form of hooks can show the value without loss. */
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
