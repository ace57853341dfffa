/** Promise that resolves when an editor has loaded. Files that only the editor needs are requested after that. */
const readySignal = Promise.withResolvers<void>();

export const whenEditorReady = readySignal.promise;
export const markEditorReady = readySignal.resolve;
