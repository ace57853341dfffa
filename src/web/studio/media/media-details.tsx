/** Dialog for one file or folder: a preview, its properties, and buttons to rename, move, share and delete it. */
import X from "icon:x";
import { type FormEvent, useEffect, useState } from "react";
import { copyText } from "../../copy-text.js";
import { type ApiClient, ApiError, asApiError } from "../shared/api.js";
import { ChangedElsewhereNotice } from "../shared/changed-elsewhere.js";
import { formatBytes, formatExactTime } from "../shared/format.js";
import { ModalDialog } from "../shared/modal.js";
import type { MediaFile, MediaFolder, MediaListing } from "../shared/model.js";
import { useFileContent } from "../shared/use-bytes.js";
import { useFieldDraft } from "../shared/use-field-draft.js";
import type { MediaItem, MediaState } from "./use-media.js";

/** Maximum size of an audio or video file that the dialog loads as a preview. A larger file can only be downloaded. */
const PREVIEW_MAX_BYTES = 64 * 1024 * 1024;
const TEXT_PREVIEW_MAX_BYTES = 64 * 1024;

type PreviewKind = "image" | "audio" | "video" | "text" | "none";

function getPreviewKind({ contentType, size, bytes }: MediaFile): PreviewKind {
  if (size) return "image";
  if (bytes > PREVIEW_MAX_BYTES) return "none";
  if (contentType.startsWith("audio/")) return "audio";
  if (contentType.startsWith("video/")) return "video";
  return contentType === "text/plain" && bytes <= TEXT_PREVIEW_MAX_BYTES ? "text" : "none";
}

/** Returns the URL of the file's preview, or null if it has none. For an image, the URL requests the width of the dialog. */
const getPreviewUrl = ({ url }: MediaFile, previewKind: PreviewKind) =>
  previewKind === "none" ? null : previewKind === "image" ? `${url}?width=1024&format=webp` : url;

function TextPreview({ blob }: { blob: Blob }) {
  const [text, setText] = useState("");
  useEffect(() => void blob.text().then(setText), [blob]);
  return <pre>{text}</pre>;
}

function FilePreview({ api, file }: { api: ApiClient; file: MediaFile }) {
  const previewKind = getPreviewKind(file);
  const { blob, url, hasFailed } = useFileContent(api, getPreviewUrl(file, previewKind));
  if (previewKind === "none") return <p className="hint">Studio has no preview for this type or size of file.</p>;
  if (hasFailed) return <p className="fault">The file could not be read.</p>;
  if (!blob || !url) return <p className="hint">Loading…</p>;
  if (previewKind === "image") return <img src={url} alt={file.name} />;
  if (previewKind === "text") return <TextPreview blob={blob} />;
  // biome-ignore lint/a11y/useMediaCaption: uploaded files have no captions
  return previewKind === "audio" ? <audio src={url} controls /> : <video src={url} controls />;
}

/** Downloads the file under its own name. The link sets the name, because an object URL does not contain it. */
async function downloadFile(api: ApiClient, file: MediaFile): Promise<void> {
  const href = URL.createObjectURL(await api.readBytes(file.url));
  Object.assign(document.createElement("a"), { href, download: file.name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

function FileProperties({ file }: { file: MediaFile }) {
  return (
    <dl className="facts">
      <dt>Type</dt>
      <dd>{file.contentType}</dd>
      <dt>Size</dt>
      <dd>
        {formatBytes(file.bytes)}
        {file.size && `, ${file.size[0]} × ${file.size[1]} pixels`}
      </dd>
      <dt>Added</dt>
      <dd>{formatExactTime(file.createdAt)}</dd>
      <dt>SHA-256</dt>
      <dd className="mono">{file.checksum}</dd>
    </dl>
  );
}

function FileActions({
  api,
  file,
  createLink,
  showMessage,
}: {
  api: ApiClient;
  file: MediaFile;
  createLink: MediaState["createLink"];
  showMessage: (text: string) => void;
}) {
  const copy = async () => {
    try {
      await copyText(await createLink(file.id));
      showMessage("Copied. Anyone with the link can read the file for a day.");
    } catch (error) {
      // Any other error is from the clipboard, which the browser can block.
      showMessage(error instanceof ApiError ? error.message : "The browser does not allow copying");
    }
  };
  return (
    <div className="row">
      <button type="button" onClick={() => void copy()}>
        Copy link
      </button>
      <button
        type="button"
        onClick={() => void downloadFile(api, file).catch((error: unknown) => showMessage(asApiError(error).message))}
      >
        Download
      </button>
    </div>
  );
}

/**
 * Returns the folders to which the person can move the item (a file or folder). These are the open folder, the folders above it, and the
 * listed folders, without the folder that already contains the item and without the item itself.
 */
function findPossibleFolders(
  listing: MediaListing,
  item: MediaItem,
  currentFolderId: number | null,
): { id: number | null; name: string }[] {
  const parentFolders = [
    { id: null, name: "Media (top)" },
    ...listing.path,
    ...(listing.folder ? [listing.folder] : []),
  ];
  const siblingFolders = listing.folders.map(({ id, name }) => ({ id, name: `↳ ${name}` }));
  return [...parentFolders, ...siblingFolders].filter(
    ({ id }) => id !== currentFolderId && !(item.kind === "folder" && id === item.id),
  );
}

/**
 * Hook that returns the file or folder that the dialog shows. The dialog continues to show an item that the listing no
 * longer contains, for example after a search. `isDeleted` is true if the service has no such item any more.
 */
function useOpenedItem(item: MediaItem, listing: MediaListing, readIsDeleted: MediaState["isDeleted"]) {
  const file = item.kind === "file" ? listing.files.find(({ id }) => id === item.id) : undefined;
  const folder = item.kind === "folder" ? listing.folders.find(({ id }) => id === item.id) : undefined;
  const isListed = (file ?? folder) !== undefined;
  const [lastListedItem, setLastListedItem] = useState<{
    file?: MediaFile | undefined;
    folder?: MediaFolder | undefined;
  }>({});
  if (isListed && (lastListedItem.file !== file || lastListedItem.folder !== folder))
    setLastListedItem({ file, folder });
  const shownItem = isListed ? { file, folder } : lastListedItem;
  const openedItem: MediaFile | MediaFolder | undefined = shownItem.file ?? shownItem.folder;
  const [isDeleted, setDeleted] = useState(false);
  const [checkCount, setCheckCount] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new list causes a request, not a new function
  useEffect(() => {
    if (isListed) return setDeleted(false);
    let isOver = false;
    readIsDeleted(item).then(
      (deleted) => isOver || setDeleted(deleted),
      // Ignores a failed read: a rename then reports the deletion.
      () => undefined,
    );
    return () => {
      isOver = true;
    };
  }, [isListed, listing, checkCount]);
  return {
    file: shownItem.file,
    openedItem,
    isListed,
    isDeleted: !isListed && isDeleted,
    recheckDeletion: () => setCheckCount((count) => count + 1),
  };
}

interface MediaDetailsProps {
  api: ApiClient;
  media: MediaState;
  listing: MediaListing;
  item: MediaItem;
  removeItem: () => Promise<void>;
  onClose: () => void;
}

export function MediaDetails({ api, media, listing, item, removeItem, onClose }: MediaDetailsProps) {
  const { file, openedItem, isListed, isDeleted, recheckDeletion } = useOpenedItem(item, listing, media.isDeleted);
  const field = useFieldDraft(openedItem?.name ?? "");
  const { draft: name, setDraft: setName } = field;
  const [message, setMessage] = useState<string | null>(null);
  const [isRenamed, setRenamed] = useState(false);
  // Closes the dialog if a link names an item outside of this folder. Also closes it after a rename if the current
  // search does not find the new name.
  const shouldClose = !openedItem || (isRenamed && !isListed);
  useEffect(() => {
    if (shouldClose) onClose();
  }, [shouldClose, onClose]);
  if (!openedItem) return null;
  const currentFolderId = file ? file.folderId : (openedItem as MediaFolder).parentId;
  const renameItem = async (event: FormEvent) => {
    event.preventDefault();
    const renameFault = await media.renameItem(item, name);
    if (renameFault === null) field.markSaved(name);
    else recheckDeletion();
    setRenamed(renameFault === null);
    setMessage(renameFault ?? "Renamed.");
  };
  const changeName = (next: string) => {
    setRenamed(false);
    setName(next);
  };
  const moveItem = async (to: number | null) => {
    const moveFault = await media.moveItem(item, to);
    if (moveFault === null) onClose();
    else setMessage(moveFault);
  };
  return (
    <ModalDialog className="media-details" aria-label={openedItem.name} onClose={onClose}>
      <div className="row">
        <h2 className="grow">{openedItem.name}</h2>
        <button type="button" className="quiet icon" aria-label="Close" onClick={onClose}>
          <X size={14} aria-hidden />
        </button>
      </div>
      {file && (
        <div className="preview">
          <FilePreview api={api} file={file} />
        </div>
      )}
      {file && <FileProperties file={file} />}
      <form className="row labelled" onSubmit={(event) => void renameItem(event)}>
        <label>
          <span>Name</span>
          <input aria-label="Name" value={name} onChange={(event) => changeName(event.target.value)} />
        </label>
        <button type="submit" disabled={isDeleted || !field.isDirty || field.isChangedElsewhere || name.trim() === ""}>
          Rename
        </button>
      </form>
      <ChangedElsewhereNotice label="The name" field={field} />
      <p className="notice" role="alert">
        {isDeleted && `Someone else deleted this ${item.kind}.`}
      </p>
      <label className="field">
        Move to
        <select
          aria-label="Move to"
          value=""
          onChange={(event) => void moveItem(event.target.value === "top" ? null : Number(event.target.value))}
        >
          <option value="" disabled>
            Choose a folder…
          </option>
          {findPossibleFolders(listing, item, currentFolderId).map((folder) => (
            <option key={folder.id ?? "top"} value={folder.id ?? "top"}>
              {folder.name}
            </option>
          ))}
        </select>
      </label>
      <div className="row">
        <div className="grow">
          {file && <FileActions api={api} file={file} createLink={media.createLink} showMessage={setMessage} />}
        </div>
        <button type="button" className="quiet danger-text" onClick={() => void removeItem()}>
          Delete
        </button>
      </div>
      <p className="hint" role="status">
        {message}
      </p>
    </ModalDialog>
  );
}
