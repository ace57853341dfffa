/** Confirmation dialog with one button that confirms and one that cancels. */
import { useCallback, useState } from "react";
import { ModalDialog } from "./modal.js";

export interface ConfirmQuestion {
  title: string;
  explanation: string;
  confirmLabel: string;
  isDangerous?: boolean;
}

export type ConfirmFunction = (question: ConfirmQuestion) => Promise<boolean>;

interface OpenQuestion extends ConfirmQuestion {
  answer(isConfirmed: boolean): void;
}

function QuestionDialog({ title, explanation, confirmLabel, isDangerous, answer }: OpenQuestion) {
  return (
    <ModalDialog
      role="alertdialog"
      aria-labelledby="question"
      aria-describedby="consequence"
      onClose={() => answer(false)}
    >
      <h2 id="question">{title}</h2>
      <p id="consequence">{explanation}</p>
      <div className="row end">
        <button type="button" onClick={() => answer(false)}>
          Cancel
        </button>
        <button type="button" className={isDangerous ? "danger" : "primary"} onClick={() => answer(true)}>
          {confirmLabel}
        </button>
      </div>
    </ModalDialog>
  );
}

/**
 * Hook that returns `confirm` and `dialog`. `confirm` opens a dialog with a question and resolves to the answer. The caller must render
 * `dialog`; it is null if no question is open.
 */
export function useConfirm() {
  const [openQuestion, setOpenQuestion] = useState<OpenQuestion | null>(null);
  const confirm = useCallback<ConfirmFunction>((question) => {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const answer = (isConfirmed: boolean) => {
      setOpenQuestion(null);
      resolve(isConfirmed);
    };
    setOpenQuestion({ ...question, answer });
    return promise;
  }, []);
  return { confirm, dialog: openQuestion && <QuestionDialog key={openQuestion.title} {...openQuestion} /> };
}
