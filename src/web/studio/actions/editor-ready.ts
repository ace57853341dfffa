/**
 * Promise that resolves when the code editor has loaded. Studio requests files that only the editor needs after that, so that they do not
 * delay the editor.
 */
const readySignal = Promise.withResolvers<void>();

export const whenEditorReady = readySignal.promise;
export const markEditorReady = readySignal.resolve;
