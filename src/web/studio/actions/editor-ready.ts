/**
 * Promise that resolves when the code editor has loaded. Studio then requests further files for the editor; an earlier
 * request would delay the editor itself.
 */
const readySignal = Promise.withResolvers<void>();

export const whenCodeEditorReady = readySignal.promise;
export const markCodeEditorReady = readySignal.resolve;
