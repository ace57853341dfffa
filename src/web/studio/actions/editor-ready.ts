/** Tells when an editor is loaded. Files that only serve the editor are requested then. */
const ready = Promise.withResolvers<void>();

export const editorReady = ready.promise;
export const setEditorReady = ready.resolve;
