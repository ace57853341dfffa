/** Names for the ids of people: those who edit the app are known by name, all others by number. */
import { useEffect, useState } from "react";
import { ListEditors } from "../documents.js";
import type { Api } from "../shared/api.js";

export const fullName = ({ firstName, lastName }: { firstName: string; lastName: string }) =>
  `${firstName} ${lastName}`;

/** @returns the name of a person's id; null of null */
export function useNames(api: Api, appId: number): (userId: number | null) => string | null {
  const [names, setNames] = useState<ReadonlyMap<number, string>>(new Map());
  useEffect(() => {
    let over = false;
    api.ask(ListEditors, { appId }).then(
      ({ editors }) => over || setNames(new Map(editors.map((person) => [person.id, fullName(person)]))),
      // Numbers are what is shown without names.
      () => undefined,
    );
    return () => {
      over = true;
    };
  }, [api, appId]);
  return (userId) => (userId === null ? null : (names.get(userId) ?? `person ${userId}`));
}
