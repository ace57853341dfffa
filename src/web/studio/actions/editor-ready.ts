/** Promise that resolves when an editor has loaded. Files that only the editor needs are requested after that. */
const ready = Promise.withResolvers<void>();

export const editorReady = ready.promise;
export const setEditorReady = ready.resolve;
