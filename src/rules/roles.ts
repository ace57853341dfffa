/** Roles of people and their order. */
import { refuseField } from "./fields.js";

/**
 * Roles of people, lowest first. A role includes the rights of all lower roles, with one exception: `operator` can run
 * actions, but cannot see code and data as `reader` can.
 */
export const ROLES = ["reader", "operator", "editor", "admin", "owner"] as const;
export type Role = (typeof ROLES)[number];

/** Area of a role: a whole organization, or one app of the organization. */
export interface RoleScope {
  organizationId: number;
  /** ID of the app; null for the whole organization. */
  appId: number | null;
}

const rankOf = (role: Role): number => ROLES.indexOf(role);

/** True if the first role is higher than the second. Every role is higher than none. */
export const isRoleAbove = (role: Role, other: Role | null): boolean => other === null || rankOf(role) > rankOf(other);

/** Returns the highest of several roles, null for none. */
export const highestOf = (roles: readonly Role[]): Role | null =>
  roles.reduce<Role | null>((highest, role) => (isRoleAbove(role, highest) ? role : highest), null);

/** @throws REQUEST_INVALID */
export function parseRole(value: unknown, field: string): Role {
  if (ROLES.some((role) => role === value)) return value as Role;
  refuseField(field, `one of ${ROLES.join(", ")}`, value);
}
