/** Finds the names of people by their IDs. Editors of the app are shown by name, other people by number. */
import { useMemo } from "react";
import { ListEditors } from "../documents.js";
import { queryOf, useResource } from "../shared/use-resource.js";

export const getFullName = ({ firstName, lastName }: { firstName: string; lastName: string }) =>
  `${firstName} ${lastName}`;

/** Returns a function that finds a person's name by the user ID. For null, it returns null. */
export function usePersonNames(appId: number): (userId: number | null) => string | null {
  const { value } = useResource(queryOf(ListEditors, { appId }));
  const names = useMemo(() => new Map(value?.editors.map((person) => [person.id, getFullName(person)])), [value]);
  return (userId) => (userId === null ? null : (names.get(userId) ?? `person ${userId}`));
}
