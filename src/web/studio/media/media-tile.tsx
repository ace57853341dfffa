/** Tile of a folder or a file in the grid. A click or Enter opens it, Delete deletes it, and the person can drag it to a folder. */
import Ellipsis from "icon:ellipsis";
import Folder from "icon:folder";
import type { DragEvent, KeyboardEvent, ReactNode } from "react";
import type { ApiClient } from "../shared/api.js";
import { formatBytes } from "../shared/format.js";
import type { MediaFile, MediaFolder } from "../shared/model.js";
import { useFileContent, useWasVisible } from "../shared/use-bytes.js";
import type { MediaItem } from "./use-media.js";

/** MIME type that this page sets for its own dragged files and folders, to distinguish them from files dragged into the browser. */
const DRAG_TYPE = "application/x-svc-media";

export const createDragStartHandler = (item: MediaItem) => (event: DragEvent) => {
  event.dataTransfer.setData(DRAG_TYPE, JSON.stringify(item));
  event.dataTransfer.effectAllowed = "move";
};

export const readDraggedItem = (event: DragEvent): MediaItem | null => {
  const text = event.dataTransfer.getData(DRAG_TYPE);
  return text === "" ? null : (JSON.parse(text) as MediaItem);
};

/** Returns event handlers for an element on which the person can drop a dragged file or folder. */
export function createDropHandlers(drop: (item: MediaItem) => void) {
  return {
    onDragOver: (event: DragEvent) => {
      if (event.dataTransfer.types.includes(DRAG_TYPE)) event.preventDefault();
    },
    onDrop: (event: DragEvent) => {
      const item = readDraggedItem(event);
      if (!item) return;
      event.preventDefault();
      event.stopPropagation();
      drop(item);
    },
  };
}

const createDeleteKeyHandler = (remove: () => void) => (event: KeyboardEvent) => {
  if (event.key === "Delete") remove();
};

/** Returns the kind of a file as a short text, such as "PDF". */
function getFileKind({ name, contentType }: MediaFile): string {
  const extension = /\.(\w{1,5})$/.exec(name)?.[1];
  return (extension ?? contentType.split("/")[1] ?? "file").toUpperCase().slice(0, 5);
}

function Thumbnail({ api, file }: { api: ApiClient; file: MediaFile }): ReactNode {
  const [ref, wasVisible] = useWasVisible<HTMLSpanElement>();
  const { url } = useFileContent(api, wasVisible ? file.thumbnail : null);
  return (
    <span ref={ref} className="thumbnail">
      {url ? <img src={url} alt="" /> : <span className="kind">{getFileKind(file)}</span>}
    </span>
  );
}

interface MediaTileProps {
  openItem: () => void;
  removeItem: () => void;
}

export function FileTile({ api, file, openItem, removeItem }: MediaTileProps & { api: ApiClient; file: MediaFile }) {
  return (
    <li>
      <button
        type="button"
        className="tile"
        draggable
        title={file.name}
        onClick={openItem}
        onKeyDown={createDeleteKeyHandler(removeItem)}
        onDragStart={createDragStartHandler({ kind: "file", id: file.id })}
      >
        <Thumbnail api={api} file={file} />
        <b>{file.name}</b>
        <span className="hint">
          {formatBytes(file.bytes)}
          {file.size && ` · ${file.size[0]} × ${file.size[1]}`}
        </span>
      </button>
    </li>
  );
}

export function FolderTile({
  folder,
  openItem,
  edit,
  removeItem,
  drop,
}: MediaTileProps & { folder: MediaFolder; edit: () => void; drop: (item: MediaItem) => void }) {
  return (
    <li className="folder-tile">
      <button
        type="button"
        className="tile"
        draggable
        title={folder.name}
        onClick={openItem}
        onKeyDown={createDeleteKeyHandler(removeItem)}
        onDragStart={createDragStartHandler({ kind: "folder", id: folder.id })}
        {...createDropHandlers(drop)}
      >
        <Folder size={18} aria-hidden />
        <b>{folder.name}</b>
      </button>
      <button type="button" className="quiet icon" aria-label={`Change the folder ${folder.name}`} onClick={edit}>
        <Ellipsis size={16} aria-hidden />
      </button>
    </li>
  );
}
