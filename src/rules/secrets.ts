/** Which of an app's underscore settings are secrets to be kept in, each under the key that may be named (contract, section 6). */

/** Structurally the engine's Secret: rules and engine know nothing of each other. */
export interface NamedSecret {
  name: string;
  value: string;
}

/** Numbers of fewer digits are counts and limits; they would be found everywhere. */
const NUMBER_MIN_CHARACTERS = 8;

function* leaves(value: unknown): Generator<string> {
  if (typeof value === "string") yield value;
  else if (typeof value === "number") {
    if (String(value).length >= NUMBER_MIN_CHARACTERS) yield String(value);
  } else if (typeof value === "object" && value !== null) {
    for (const inner of Object.values(value)) yield* leaves(inner);
  }
}

/**
 * The strings and long numbers in private and protected settings. A short string is a secret where it is a setting's whole value;
 * deeper ones ("eu", "test") are parts of a configuration that a result may well hold.
 */
export function secretsOf(settings: Readonly<Record<string, unknown>>): NamedSecret[] {
  return Object.entries(settings).flatMap(([name, setting]) =>
    [...leaves(setting)]
      .filter((value) => value.length >= NUMBER_MIN_CHARACTERS || value === setting)
      .map((value) => ({ name, value })),
  );
}
