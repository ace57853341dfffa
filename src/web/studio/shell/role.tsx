/**
 * Role of the person on the open app. Components hide or disable controls by role. The service checks all rights itself. Use these
 * components for each control that changes something.
 */
import { createContext, type ReactNode, useContext } from "react";
import type { Role } from "../../../rules/roles.js";
import { mayEdit, mayOperate } from "./rights.js";

const RoleContext = createContext<Role>("reader");
export const RoleProvider = RoleContext.Provider;

export const useRole = (): Role => useContext(RoleContext);

/** Shows controls that change something to people who may use them. */
export function ForEditors({ children, otherwise = null }: { children: ReactNode; otherwise?: ReactNode }) {
  return mayEdit(useRole()) ? children : otherwise;
}

/** Shows controls that start, cancel or pause something to people who may use them. */
export function ForOperators({ children }: { children: ReactNode }) {
  return mayOperate(useRole()) ? children : null;
}

/** Disables all fields and buttons in `children` for people who may only read. */
export function ReadOnlyFields({ children }: { children: ReactNode }) {
  return (
    <fieldset className="read-only" disabled={!mayEdit(useRole())}>
      {children}
    </fieldset>
  );
}
