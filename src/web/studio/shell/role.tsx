/**
 * Role of the signed-in person on the open app, and components that hide or disable controls by this role. Use these components for each
 * control that changes something. The service itself also checks all rights.
 */
import { createContext, type ReactNode, useContext } from "react";
import type { Role } from "../../../rules/roles.js";
import { mayEdit, mayOperate } from "./rights.js";

const RoleContext = createContext<Role>("reader");
export const RoleProvider = RoleContext.Provider;

export const useRole = (): Role => useContext(RoleContext);

/** Shows its children only to people who may edit the app. Use it for controls that change something. */
export function ForEditors({ children, otherwise = null }: { children: ReactNode; otherwise?: ReactNode }) {
  return mayEdit(useRole()) ? children : otherwise;
}

/** Shows its children only to people who may operate the app. Use it for controls that start, cancel or pause something. */
export function ForOperators({ children }: { children: ReactNode }) {
  return mayOperate(useRole()) ? children : null;
}

/** Disables all fields and buttons in its children for people who may not edit the app. */
export function ReadOnlyFields({ children }: { children: ReactNode }) {
  return (
    <fieldset className="read-only" disabled={!mayEdit(useRole())}>
      {children}
    </fieldset>
  );
}
