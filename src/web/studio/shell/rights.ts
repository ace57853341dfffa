/** Rights of each role in Studio. Pages hide what a role may not do; the service itself checks each request. */
import type { Role } from "../../../rules/roles.js";
import type { StudioSession } from "./session.js";

const EDITOR_ROLES: readonly Role[] = ["owner", "admin", "editor"];

export const mayEdit = (role: Role): boolean => EDITOR_ROLES.includes(role);
export const mayOperate = (role: Role): boolean => role !== "reader";
export const mayManage = (role: Role): boolean => role === "owner" || role === "admin";

/** Returns the role of the person on an app. Without a role, an administrator of the service counts as owner, other people as readers. */
export const getRoleOnApp = ({ roles, isAdmin }: Pick<StudioSession, "roles" | "isAdmin">, appId: number): Role =>
  roles.apps.find(({ id }) => id === appId)?.role ?? (isAdmin ? "owner" : "reader");
