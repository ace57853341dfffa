/** Validates the access rules of media folders and files. Decides if the rules grant an app user a right, such as `read`. */

import { ActionError } from "../errors.js";
import { type AppUserData, type CallerRule, checkCallerRule, isUserAllowedByRule } from "./caller-rules.js";
import { isObject } from "./describe-value.js";
import { refuseField, requireListOf } from "./fields.js";
import { createFlatShape, refuseUnknownFields } from "./unknown-fields.js";

export const MEDIA_RIGHTS = ["read", "create", "update", "delete"] as const;
export type MediaRight = (typeof MEDIA_RIGHTS)[number];

export interface MediaAccessRule {
  type: readonly MediaRight[];
  allow: CallerRule;
  /** False if the service ignores this rule. Default true. */
  enabled?: boolean;
}

const RULES_MAX = 50;
const RULES_MAX_BYTES = 32 * 1024;
const RULE_SHAPE = createFlatShape(["type", "allow", "enabled"]);

function checkRule(rule: unknown, field: string): void {
  if (!isObject(rule)) refuseField(field, "an object", rule);
  const { type, allow, enabled } = rule;
  requireListOf(MEDIA_RIGHTS, type, `${field}.type`);
  checkCallerRule(allow, `${field}.allow`);
  if (enabled !== undefined && typeof enabled !== "boolean") refuseField(`${field}.enabled`, "true or false", enabled);
}

/**
 * Validates the access rules of a folder or file. null: the rules of the parent folder apply.
 * @throws REQUEST_INVALID with the path of the invalid field; PAYLOAD_TOO_LARGE
 */
export function parseMediaRules(value: unknown): MediaAccessRule[] | null {
  if (value === null) return null;
  if (!Array.isArray(value) || value.length > RULES_MAX) {
    refuseField("accessRules", `null, or an array of at most ${RULES_MAX} rules`, value);
  }
  for (const [at, rule] of value.entries()) checkRule(rule, `accessRules[${at}]`);
  const bytes = Buffer.byteLength(JSON.stringify(value));
  if (bytes > RULES_MAX_BYTES) {
    const message = `accessRules must be at most ${RULES_MAX_BYTES} bytes (32 KB) of JSON (got ${bytes})`;
    throw new ActionError("PAYLOAD_TOO_LARGE", message);
  }
  refuseUnknownFields(value, [RULE_SHAPE], "accessRules");
  return value as MediaAccessRule[];
}

/**
 * True if the rules grant a right, such as `read`, to the app user. A `user` of null is an anonymous visitor.
 * @param rules rules of the file, or of the nearest folder that has rules; null grants no right
 */
export function grantsMediaRight(
  rules: readonly MediaAccessRule[] | null,
  right: MediaRight,
  user: AppUserData | null,
): boolean {
  return (rules ?? []).some(
    ({ type, allow, enabled }) => enabled !== false && type.includes(right) && isUserAllowedByRule(allow, user),
  );
}
