/**
 * Returns warnings about settings of a saved action that have no effect (contract, section 3). The server and the
 * browser both execute this file, so it imports nothing.
 */

export interface ActionWarning {
  /** Path of the field, such as `triggers[0]`. */
  path: string;
  message: string;
}

interface ScheduledAction {
  triggers: readonly { trigger: string }[];
  frequency: string | null;
}

/** Returns a warning for each setting that has no effect. The list is empty if every setting has an effect. */
export function listActionWarnings({ triggers, frequency }: ScheduledAction): ActionWarning[] {
  if (frequency) return [];
  return triggers.flatMap(({ trigger }, index) => {
    if (trigger !== "schedule") return [];
    return [
      { path: `triggers[${index}]`, message: 'a schedule trigger without "frequency" never runs; set "frequency"' },
    ];
  });
}
