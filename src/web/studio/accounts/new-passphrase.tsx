/**
 * Form fields for a new passphrase. Studio checks only the number of characters; the service also checks how easy the passphrase is to
 * guess.
 */
import { SignInField } from "./sign-in-forms.js";

const PASSPHRASE_MIN_CHARACTERS = 12;

export const isPassphraseLongEnough = (passphrase: string): boolean =>
  [...passphrase].length >= PASSPHRASE_MIN_CHARACTERS;

interface NewPassphraseProps {
  value: string;
  onChange: (value: string) => void;
  fault: string | null;
}

export function NewPassphrase({ value, onChange, fault }: NewPassphraseProps) {
  return (
    <>
      <SignInField
        label="New passphrase"
        name="passphrase"
        type="password"
        autoComplete="new-password"
        {...{ value, onChange, fault }}
      />
      <p className="hint">
        At least {PASSPHRASE_MIN_CHARACTERS} characters. Several words are easy to remember and hard to guess.
      </p>
    </>
  );
}
