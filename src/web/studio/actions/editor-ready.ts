/**
 * Promise that resolves when the code editor has loaded. Studio then requests further files for the editor; an earlier
 * request would delay the editor itself.
 */
const readySignal = Promise.withResolvers<void>();

export const whenEditorReady = readySignal.promise;
export const markEditorReady = readySignal.resolve;
