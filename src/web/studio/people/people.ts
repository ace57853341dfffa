/** Finds names for the IDs of people. Editors of the app have a name; others are shown by number. */
import { useMemo } from "react";
import { ListEditors } from "../documents.js";
import { queryOf, useResource } from "../shared/use-resource.js";

export const fullName = ({ firstName, lastName }: { firstName: string; lastName: string }) =>
  `${firstName} ${lastName}`;

/** @returns the name for an ID, or null for null */
export function useNames(appId: number): (userId: number | null) => string | null {
  const { value } = useResource(queryOf(ListEditors, { appId }));
  const names = useMemo(() => new Map(value?.editors.map((person) => [person.id, fullName(person)])), [value]);
  return (userId) => (userId === null ? null : (names.get(userId) ?? `person ${userId}`));
}
