/** Roles of people, and their order. */
import { refuseField } from "./fields.js";

/**
 * Roles of people, lowest first. A role has the rights of all lower roles, except that `operator` can run actions but not read code and
 * data.
 */
export const ROLES = ["reader", "operator", "editor", "admin", "owner"] as const;
export type Role = (typeof ROLES)[number];

export interface RoleScope {
  organizationId: number;
  /** ID of the app; null if the role applies to the whole organization. */
  appId: number | null;
}

const getRank = (role: Role): number => ROLES.indexOf(role);

/** True if `role` is higher than `other`. null (no role) is lower than every role. */
export const isRoleAbove = (role: Role, other: Role | null): boolean =>
  other === null || getRank(role) > getRank(other);

export const getHighestRole = (roles: readonly Role[]): Role | null =>
  roles.reduce<Role | null>((highest, role) => (isRoleAbove(role, highest) ? role : highest), null);

/** Returns the value if it is the name of a role. @throws REQUEST_INVALID */
export function parseRole(value: unknown, field: string): Role {
  if (ROLES.some((role) => role === value)) return value as Role;
  refuseField(field, `one of ${ROLES.join(", ")}`, value);
}
