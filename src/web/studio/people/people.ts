/** Finds the names of people by their user IDs. Studio shows editors of the app by name, and other people by their ID. */
import { useMemo } from "react";
import { ListEditors } from "../documents.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";

export const getFullName = ({ firstName, lastName }: { firstName: string; lastName: string }) =>
  `${firstName} ${lastName}`;

/** Hook that returns a function which finds a person's name by the user ID. The function returns null for null. */
export function usePersonNames(appId: number): (userId: number | null) => string | null {
  const { value } = useResource(createQueryOptions(ListEditors, { appId }));
  const names = useMemo(() => new Map(value?.editors.map((person) => [person.id, getFullName(person)])), [value]);
  return (userId) => (userId === null ? null : (names.get(userId) ?? `person ${userId}`));
}
