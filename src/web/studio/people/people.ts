/** Names for the ids of people: those who edit the app are known by name, all others by number. */
import { useMemo } from "react";
import { ListEditors } from "../documents.js";
import { queryOf, useResource } from "../shared/use-resource.js";

export const fullName = ({ firstName, lastName }: { firstName: string; lastName: string }) =>
  `${firstName} ${lastName}`;

/** @returns the name of a person's id; null of null */
export function useNames(appId: number): (userId: number | null) => string | null {
  const { value } = useResource(queryOf(ListEditors, { appId }));
  const names = useMemo(() => new Map(value?.editors.map((person) => [person.id, fullName(person)])), [value]);
  return (userId) => (userId === null ? null : (names.get(userId) ?? `person ${userId}`));
}
