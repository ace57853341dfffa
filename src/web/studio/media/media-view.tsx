/** Page of the app's media. Shows a folder as a grid, the path to the folder, and the current uploads. The person can drop files on it. */
import X from "icon:x";
import { type DragEvent, type FormEvent, useCallback, useEffect, useRef, useState } from "react";
import type { MediaListing } from "../shared/model.js";
import type { PageProps } from "../shell/page-props.js";
import { mayEdit } from "../shell/rights.js";
import { ForEditors, useRole } from "../shell/role.js";
import { mergeQuery, type Navigation, parseId } from "../shell/studio-route.js";
import { MediaDetails } from "./media-details.js";
import { createDropHandlers, FileTile, FolderTile } from "./media-tile.js";
import { type MediaItem, type MediaState, type PendingUpload, useMedia } from "./use-media.js";

function FolderPath({
  listing,
  go,
  dropItem: moveItem,
}: {
  listing: MediaListing | null;
  go: Navigation["go"];
  dropItem: (item: MediaItem, to: number | null) => void;
}) {
  const topFolder = { id: null, name: "Media" };
  const pathFolders = listing && !listing.folder ? [] : [topFolder, ...(listing?.path ?? [])];
  return (
    <nav className="path" aria-label="Folders above">
      {pathFolders.map(({ id, name }) => (
        <button
          key={id ?? "top"}
          type="button"
          className="link"
          onClick={() => go({ item: id === null ? null : String(id) })}
          {...createDropHandlers((item) => moveItem(item, id))}
        >
          {name}
        </button>
      ))}
      {listing && <b aria-current="location">{listing.folder?.name ?? topFolder.name}</b>}
    </nav>
  );
}

function NewFolderForm({ createFolder }: { createFolder: MediaState["createFolder"] }) {
  const [name, setName] = useState<string | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const isOpen = name !== null;
  // Focuses this field, because it replaces the button that had the focus.
  useEffect(() => {
    if (isOpen) field.current?.focus();
  }, [isOpen]);
  if (name === null) {
    return (
      <button type="button" onClick={() => setName("")}>
        New folder
      </button>
    );
  }
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    const createFault = await createFolder(name);
    setBusy(false);
    setFault(createFault);
    if (createFault === null) setName(null);
  };
  return (
    <form
      className="row"
      onSubmit={(event) => void submit(event)}
      onKeyDown={(event) => event.key === "Escape" && setName(null)}
    >
      <input
        ref={field}
        aria-label="Name of the new folder"
        aria-invalid={fault !== null}
        placeholder="Folder name"
        readOnly={isBusy}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <button type="submit" className="primary" disabled={isBusy || name.trim() === ""}>
        Create
      </button>
      <p className="fault" role="alert">
        {fault}
      </p>
    </form>
  );
}

function UploadList({ uploads }: { uploads: readonly PendingUpload[] }) {
  if (uploads.length === 0) return null;
  return (
    <ul className="uploads" aria-label="Uploads">
      {uploads.map(({ uploadKey, name, sentFraction, fault, cancelUpload }) => (
        <li key={uploadKey}>
          <span className="grow">{name}</span>
          {fault === null ? (
            <progress value={sentFraction} aria-label={`Upload of ${name}`} />
          ) : (
            <span className="fault" role="alert">
              {fault}
            </span>
          )}
          <button
            type="button"
            className="quiet icon"
            aria-label={fault === null ? `Cancel the upload of ${name}` : `Remove ${name} from the uploads`}
            onClick={cancelUpload}
          >
            <X size={14} aria-hidden />
          </button>
        </li>
      ))}
    </ul>
  );
}

function EmptyFolder({ search }: { search: string }) {
  const isEditor = mayEdit(useRole());
  return (
    <div className="welcome">
      <h2>{search ? "Nothing has that name" : "Nothing here yet"}</h2>
      {!search && isEditor && (
        <p>Drop files here, or choose Upload. The service removes location and camera data from pictures.</p>
      )}
    </div>
  );
}

interface MediaViewProps extends Pick<PageProps, "api" | "appId" | "confirm" | "go"> {
  folderId: number | null;
  query: MediaQuery;
}

/** Query parameters in the URL: the search text, and the ID of the file or folder whose details are open. */
interface MediaQuery {
  search?: string | undefined;
  file?: string | undefined;
  folder?: string | undefined;
}

function parseOpenItem({ file, folder }: MediaQuery): MediaItem | null {
  const [fileId, folderId] = [parseId(file), parseId(folder)];
  if (fileId !== null) return { kind: "file", id: fileId };
  return folderId === null ? null : { kind: "folder", id: folderId };
}

/** Hook that uploads the files which a person drags into the window. */
function useDropZone(send: MediaState["uploadFiles"]) {
  const [isDraggedOver, setDraggedOver] = useState(false);
  const hasFiles = (event: DragEvent) => event.dataTransfer.types.includes("Files");
  return {
    isDraggedOver,
    handlers: {
      onDragOver: (event: DragEvent) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setDraggedOver(true);
      },
      onDragLeave: (event: DragEvent) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setDraggedOver(false);
      },
      onDrop: (event: DragEvent) => {
        setDraggedOver(false);
        if (!hasFiles(event)) return;
        event.preventDefault();
        send([...event.dataTransfer.files]);
      },
    },
  };
}

function MediaView({ api, appId, confirm, go, folderId, query }: MediaViewProps) {
  const { search = "" } = query;
  const openedItem = parseOpenItem(query);
  const changeQuery = useCallback(
    (part: MediaQuery, replacesHistoryEntry = false) =>
      void go({ query: mergeQuery(query, part) }, { replacesHistoryEntry }),
    [go, query],
  );
  const openItem = ({ kind, id }: MediaItem) => changeQuery({ [kind]: String(id) });
  const [fault, setFault] = useState<string | null>(null);
  const isEditor = mayEdit(useRole());
  const media = useMedia(api, appId, folderId, search);
  const { listing, uploadFiles } = media;
  const fileInput = useRef<HTMLInputElement>(null);
  const { isDraggedOver, handlers } = useDropZone(uploadFiles);
  const closeDetails = useCallback(() => changeQuery({ file: undefined, folder: undefined }), [changeQuery]);

  const moveItem = async (item: MediaItem, to: number | null) => setFault(await media.moveItem(item, to));
  const removeItem = async (item: MediaItem, name: string) => {
    const text =
      item.kind === "folder"
        ? "This also deletes all files and folders in it."
        : "Links to the file stop working, and pages can no longer show it.";
    if (!(await confirm({ title: `Delete ${name}?`, explanation: text, confirmLabel: "Delete", isDangerous: true })))
      return;
    setFault(await media.removeItem(item));
    closeDetails();
  };
  const getItemName = ({ kind, id }: MediaItem) =>
    (kind === "file" ? listing?.files : listing?.folders)?.find((item) => item.id === id)?.name ?? "";
  const isEmpty = listing !== null && listing.files.length === 0 && listing.folders.length === 0;

  return (
    <section className={isDraggedOver ? "media over" : "media"} aria-label="Media" {...(isEditor && handlers)}>
      <div className="row media-head">
        <FolderPath listing={search ? null : listing} go={go} dropItem={(item, to) => void moveItem(item, to)} />
        <span className="grow" />
        <input
          type="search"
          aria-label="Search by name"
          placeholder="Search by name"
          value={search}
          onChange={(event) => changeQuery({ search: event.target.value }, query.search !== undefined)}
        />
        <ForEditors>
          <NewFolderForm createFolder={media.createFolder} />
          <button type="button" className="primary" onClick={() => fileInput.current?.click()}>
            Upload
          </button>
        </ForEditors>
        <input
          ref={fileInput}
          type="file"
          multiple
          hidden
          aria-label="Files to upload"
          onChange={({ target }) => {
            uploadFiles([...(target.files ?? [])]);
            target.value = "";
          }}
        />
      </div>
      <p className="fault" role="alert">
        {fault ?? media.fault}
      </p>
      <UploadList uploads={media.uploads} />
      {isEmpty && <EmptyFolder search={search} />}
      <ul className="tiles">
        {listing?.folders.map((folder) => {
          const item: MediaItem = { kind: "folder", id: folder.id };
          return (
            <FolderTile
              key={folder.id}
              folder={folder}
              openItem={() => go({ item: String(folder.id) })}
              edit={() => openItem(item)}
              removeItem={() => void removeItem(item, folder.name)}
              drop={(dropped) => void moveItem(dropped, folder.id)}
            />
          );
        })}
      </ul>
      <ul className="tiles">
        {listing?.files.map((file) => {
          const item: MediaItem = { kind: "file", id: file.id };
          return (
            <FileTile
              key={file.id}
              api={api}
              file={file}
              openItem={() => openItem(item)}
              removeItem={() => void removeItem(item, file.name)}
            />
          );
        })}
      </ul>
      {listing?.pagination.hasMore && (
        <p className="hint">The first {listing.files.length} files are shown; search for others by name.</p>
      )}
      {openedItem && listing && isEditor && (
        <MediaDetails
          key={`${openedItem.kind}${openedItem.id}`}
          {...{ api, media, listing, onClose: closeDetails }}
          item={openedItem}
          removeItem={() => removeItem(openedItem, getItemName(openedItem))}
        />
      )}
    </section>
  );
}

export function MediaPage(props: PageProps) {
  const folderId = parseId(props.route.item);
  return <MediaView key={folderId} {...props} folderId={folderId} query={props.route.query} />;
}
