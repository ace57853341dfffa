/** Package `Svc.Barcode`: draws more than a hundred kinds of barcodes by bwip-js. It cannot read barcodes. */
import { type RenderOptions, toCanvas, toSVG } from "bwip-js/browser";
import { defineSvcNamespace } from "./define.js";

/** `bcid` is the kind of barcode, such as qrcode, code128 or ean13; `text` is its content. The library bwip-js defines all options. */
export type BarcodeOptions = RenderOptions;

const drawSvg = (options: BarcodeOptions): string => toSVG(options);

/** Returns the barcode as a `data:image/png` URL, for an `<img>` in a page. */
function drawPng(options: BarcodeOptions): string {
  const canvas = document.createElement("canvas");
  toCanvas(canvas, options);
  return canvas.toDataURL("image/png");
}

defineSvcNamespace("Barcode", {
  svg: drawSvg,
  png: drawPng,
  /** Returns a QR code as SVG. */
  qr: (text: string, options: Partial<BarcodeOptions> = {}) => drawSvg({ ...options, bcid: "qrcode", text }),
});
