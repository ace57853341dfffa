/**
 * Promise that resolves when the code editor has loaded. Studio waits for it before it requests further files for the editor, so that
 * these files do not delay the editor.
 */
const readySignal = Promise.withResolvers<void>();

export const whenEditorReady = readySignal.promise;
export const markEditorReady = readySignal.resolve;
