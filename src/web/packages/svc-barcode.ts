/** `Svc.Barcode`: draws barcodes of over a hundred kinds, by bwip-js. Reads none. */
import { type RenderOptions, toCanvas, toSVG } from "bwip-js/browser";
import { define } from "./define.js";

/** `bcid` names the kind, such as qrcode, code128 or ean13; `text` is the content; further options are those of bwip-js. */
export type BarcodeOptions = RenderOptions;

const svg = (options: BarcodeOptions): string => toSVG(options);

/** A `data:image/png` URL, for an `<img>` or an e-mail. */
function png(options: BarcodeOptions): string {
  const canvas = document.createElement("canvas");
  toCanvas(canvas, options);
  return canvas.toDataURL("image/png");
}

define("Barcode", {
  svg,
  png,
  /** A QR code as SVG. */
  qr: (text: string, options: Partial<BarcodeOptions> = {}) => svg({ ...options, bcid: "qrcode", text }),
});
