/** Checks the settings that the service itself uses, `__ai`, `__smtp` and `__sms`, when they are saved. */
import { ActionError } from "../errors.js";
import { AiError } from "./ai/failure.js";
import { AI_FIELDS, AI_SETTING, readAiSetting } from "./ai/setting.js";
import { DestinationFault, smsDestination, smtpDestination } from "./message-destination.js";
import { flatShape, unknownFieldIn } from "./unknown-fields.js";

/** Configuration of the operator that decides which values are valid. */
export interface ServiceSettingRules {
  /** True if http URLs are valid (ALLOW_PRIVATE_NETWORK). */
  allowHttp: boolean;
  /** MAIL_FROM, the sender of apps that name none. */
  mailFrom: string | null;
}

function checkValue(key: string, value: unknown, { allowHttp, mailFrom }: ServiceSettingRules): void {
  if (key === AI_SETTING) {
    readAiSetting(value, allowHttp);
    const unknown = unknownFieldIn(value, flatShape(AI_FIELDS), AI_SETTING);
    if (unknown) throw new ActionError("SETTINGS_INVALID", unknown.message);
  } else if (key === "__smtp") {
    smtpDestination(value, mailFrom);
  } else if (key === "__sms") {
    const destination = smsDestination(value);
    if (destination && !allowHttp && !destination.url.startsWith("https:"))
      throw new DestinationFault("the setting __sms.url must be an https address");
  }
}

/** @throws SETTINGS_INVALID that names the field by its path, and never shows a secret */
export function checkServiceSettings(
  entries: readonly (readonly [string, unknown])[],
  rules: ServiceSettingRules,
): void {
  for (const [key, value] of entries) {
    try {
      checkValue(key, value, rules);
    } catch (error) {
      if (!(error instanceof AiError || error instanceof DestinationFault)) throw error;
      throw new ActionError("SETTINGS_INVALID", error.message);
    }
  }
}
